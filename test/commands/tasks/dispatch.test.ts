/** Tasks for the agent runner: decisions, rows, and turns of several processes on one log in memory. */
import { expect } from 'chai';
import { dispatchJobs } from '../../../commands/policies/tasks/dispatch.ts';
import { decideReviewRequest } from '../../../commands/quality/verdicts.ts';
import { AT_ONCE, dispatchTasks } from '../../../commands/schedules/tasks/dispatch.ts';
import {
  decideDispatch,
  decideDispatchFailed,
  decideDispatchResponse,
  decideWithheld,
  isAsked,
  targetSession,
  taskPrompt,
} from '../../../commands/tasks/dispatch.ts';
import { taskDecider, taskStream } from '../../../commands/tasks/tasks.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import type { DomainEvent, EventDefinition, EventDraft } from '../../../shared/events/define.ts';
import { taskLinked, taskSynced } from '../../../shared/events/github/links.ts';
import { framesOf } from '../../../shared/events/monitoring/frames.ts';
import { taskWithheld } from '../../../shared/events/tasks/dispatch.ts';
import { type TaskData, taskCreated } from '../../../shared/events/tasks/tasks.ts';
import type { JobRun } from '../../../shared/ports/jobs.ts';
import type { Runner, WorkRequest, WorkResponse } from '../../../shared/ports/runner.ts';
import { type Draft, eventsOf, givenFor, rowsAfter } from '../../support/kit.ts';
import { memoryWorld } from '../../support/memory-world.ts';
import { ATTACK } from '../../support/screening-cases.ts';
import { created, deleted, requeued, statusSet, updated } from '../../support/tasks.ts';
import { testOrigin } from '../../support/world.ts';

const given = givenFor(taskDecider);
const waiting = (fields: Partial<TaskData> = {}) => created({ status: 'assigned', assigned_to: 'ada', ...fields });
const dispatched = (fields: Partial<TaskData> = {}): Draft[] => [
  waiting(fields),
  ...decideDispatch(given(waiting(fields)).state, ADA),
];
const ADA = { agent_id: 5, agent: 'ada' };
const answer = (fields: Partial<WorkResponse> = {}): WorkResponse => ({
  ...{ status: 'completed', output: 'It is dry.', error: null, sessionId: null },
  ...fields,
});

describe('tasks for the agent runner: decisions', () => {
  it('a task is dispatched once, while it waits for its agent', () => {
    const [draft, ...others] = decideDispatch(given(waiting()).state, ADA);
    expect(others).to.deep.equal([]);
    expect(draft?.data).to.deep.include({ task_id: 7, agent_id: 5, agent: 'ada', run: 1 });
    const before = given(...dispatched());
    expect(before.state.task).to.deep.include({ status: 'in_progress', assigned_to: 'ada' });
    expect(before.state.asked).to.deep.equal({ what: 'dispatch', run: 1, agent_id: 5, accepted: false });
    for (const drafts of [
      dispatched(),
      [waiting(), deleted()],
      [created({ assigned_to: 'ada' })],
      [waiting({ assigned_to: 'bob' })],
    ])
      given(...drafts)
        .when(decideDispatch, ADA)
        .then();
  });

  it('a result is added as a comment of the agent, and the task goes to review', () => {
    const drafts = decideDispatchResponse(given(...dispatched()).state, 1, answer({ sessionId: 's1' }), 12);
    expect(drafts.map(({ type }) => type)).to.deep.equal(['TaskDispatchCompleted', 'TaskCommented']);
    expect(drafts[0]?.data).to.deep.include({ agent_id: 5, session_id: 's1' });
    expect(drafts[1]?.data).to.deep.include({ comment_id: 12, author: 'ada', content: 'It is dry.' });
    const state = given(...dispatched({ metadata: { kept: 1 } }), ...drafts).state;
    expect(state.task).to.deep.include({ status: 'review', outcome: 'success', resolution: 'It is dry.' });
    expect(state.task.metadata).to.deep.equal({ kept: 1, dispatch_session_id: 's1' });
    expect(state.asked).to.equal(null);
    const silent = decideDispatchResponse(given(...dispatched()).state, 1, answer({ output: ' \n' }), 12);
    expect(silent.map(({ data }) => (data as { resolution: unknown }).resolution)).to.deep.equal([null]);
  });

  it('a failed task is returned until its final failure', () => {
    const failed = (before: number) => {
      const drafts = dispatched({ dispatch_attempts: before });
      return given(...drafts, ...decideDispatchFailed(given(...drafts).state, 1, 'no paper')).state;
    };
    for (const before of [0, 3])
      expect(failed(before).task).to.deep.include({ status: 'assigned', dispatch_attempts: before + 1 });
    expect(failed(4).task).to.deep.include({ status: 'failed', dispatch_attempts: 5, error_message: 'no paper' });
    const [draft] = decideDispatchResponse(
      given(...dispatched()).state,
      1,
      answer({ status: 'failed', error: null, output: null }),
      12,
    );
    expect(draft?.data).to.deep.include({ error_message: 'The agent gave no reason.' });
  });

  it('a response counts once, and only while this dispatch is open', () => {
    const first = dispatched();
    const done = decideDispatchResponse(given(...first).state, 1, answer(), 12);
    const accepted = decideDispatchResponse(given(...first).state, 1, answer({ status: 'accepted' }), 12);
    const back = decideDispatchFailed(given(...first).state, 1, 'no');
    const again = decideDispatch(given(...first, ...back).state, ADA);
    expect(again[0]?.data).to.deep.include({ run: 2 });
    for (const drafts of [
      [...first, ...done],
      [...first, ...accepted],
      [...first, ...back],
      [...first, ...back, ...again],
      [...first, deleted()],
      [...first, statusSet('in_progress', 'assigned'), statusSet('assigned', 'in_progress')],
      [...first, updated({ assigned_to: 'bob', status: 'in_progress' }, { assigned_to: 'ada', status: 'in_progress' })],
      [...first, requeued()],
    ]) {
      const before = given(...drafts);
      expect(isAsked(before.state, 'dispatch', 1)).to.equal(false);
      before.when(decideDispatchResponse, 1, answer(), 13).then();
      before.when(decideDispatchFailed, 1, 'no').then();
    }
    const described = updated({ description: 'more' }, { status: 'in_progress', assigned_to: 'ada' });
    expect(isAsked(given(...first, described).state, 'dispatch', 1), 'its description says nothing of it').to.equal(
      true,
    );
    expect(isAsked(given(...first).state, 'review', 1)).to.equal(false);
  });

  it('the agent’s prompt contains the task and the reason for the last rejection', () => {
    const { state } = given(created({ description: 'It rains in.', tags: ['wood', 'art'] }));
    const by = 'user admin';
    expect(taskPrompt(state, 'TASK-003', null)).to.deep.equal([
      '[Task TASK-003]',
      { what: 'title', by, text: 'Mend the roof' },
      { what: 'description', by, text: 'It rains in.' },
      { what: 'tags', by, text: 'wood, art' },
    ]);
    expect(taskPrompt(given(created()).state, 'TASK-003', 'Still wet.')).to.deep.equal([
      '[Task TASK-003]',
      { what: 'title', by, text: 'Mend the roof' },
      'The last result was rejected. Take the notes of the review into account.',
      { what: 'review notes', by: 'aegis', text: 'Still wet.' },
    ]);
    expect(targetSession(given(created({ metadata: { target_session: 's1' } })).state)).to.equal('s1');
    for (const target_session of [undefined, '', ' ', 7])
      expect(targetSession(given(created({ metadata: { target_session } })).state)).to.equal(null);
  });
});

describe('tasks for the agent runner: authors of texts', () => {
  const bob = { actor: { type: 'user', id: 2, name: 'bob' } } as const;
  const ada = { actor: { type: 'agent', id: 5, name: 'agent:ada' } } as const;
  type By = Parameters<typeof eventsOf>[1];
  const writers = (...steps: readonly (readonly [Draft, By?])[]) =>
    steps
      .flatMap(([draft, by]) => eventsOf([draft], by))
      .reduce(
        (state, event) => taskDecider.evolve(state, { ...event, at: 0, by: event.meta.actor }),
        taskDecider.initial,
      ).writers;
  const ISSUE = { title: 'Leak', body_hash: 'b1', body_cut: false, state: 'open', labels: [] } as const;
  const FACE = { title: 'Leak', description_hash: 'd1', status: 'inbox', priority: 'medium' };
  const link = {
    task_id: 7,
    title: 'Leak',
    repo: 'ann/roof',
    issue_number: 5,
    issue_updated_at: '2026-01-01T00:00:00Z',
  };
  const linked = taskLinked.draft({ ...link, issue: { ...ISSUE, labels: [] }, face: FACE, issue_url: 'https://x' });
  const pulled = (face: object, issue: object = {}) =>
    taskSynced.draft({
      ...link,
      issue: { ...ISSUE, labels: [], ...issue },
      face: { ...FACE, ...face },
      direction: 'pull',
      issue_state: 'open',
    });

  it('is the creator until another author changes the text', () => {
    expect(writers([created(), bob])).to.deep.equal({
      ...{ title: 'user bob', description: 'user bob', tags: 'user bob', resolution: 'user bob' },
    });
    const changed = updated({ description: 'more', status: 'review' });
    expect(writers([created(), bob], [changed, ada])).to.include({ title: 'user bob', description: 'agent ada' });
    expect(writers([created(), bob], [updated({ status: 'review' }), ada])).to.include({ description: 'user bob' });
  });

  it('is the agent for a result, whichever caller reports it for the runner', () => {
    const drafts = [...dispatched(), ...decideDispatchResponse(given(...dispatched()).state, 1, answer(), 12)];
    expect(given(...drafts).state.writers).to.include({ title: 'user admin', resolution: 'agent ada' });
  });

  it('is GitHub for an imported issue until a local change, and again after a change at GitHub', () => {
    const imported: (readonly [Draft, By?])[] = [[created({}, 'github'), bob], [linked]];
    expect(writers(...imported)).to.include({ title: 'GitHub', description: 'GitHub' });
    const here = updated({ description: 'more' });
    expect(writers(...imported, [here, bob])).to.include({ title: 'GitHub', description: 'user bob' });
    const there = [updated({ description: 'yet more' }), bob] as const;
    expect(
      writers(...imported, [here, bob], there, [pulled({ description_hash: 'd2' }, { body_hash: 'b2' })]),
    ).to.include({
      ...{ title: 'GitHub', description: 'GitHub' },
    });
    expect(writers([created(), bob], [linked], [pulled({ status: 'done' })])).to.include({ title: 'user bob' });
    const state = given(created({}, 'github'), linked).state;
    expect(taskPrompt(state, 'TASK-003', null)[1]).to.deep.equal({
      ...{ what: 'title', by: 'GitHub issue ann/roof#5', text: 'Mend the roof' },
    });
  });

  it('is the recurring task or cron job for a task that a schedule created', () => {
    const made = taskCreated.draft({ ...created({}, 'recurrence').data, parent_task_id: 3 });
    expect(writers([made]).description).to.equal('recurring task 3');
    expect(writers([created({}, 'recurrence')]).description).to.equal('a cron job');
  });
});

describe('tasks for the agent runner: texts that violate a rule', () => {
  const BREACH = { what: 'description', by: 'user ann', rules: ['prompt-override'] };

  it('return the task to its owner with the reason, and record a security event', () => {
    for (const [what, drafts, before, again] of [
      ['dispatch', dispatched(), 'in_progress', 'assigned'],
      [
        'review',
        [created({ status: 'review' }), ...decideReviewRequest(given(created({ status: 'review' })).state, 0)],
        'quality_review',
        'review',
      ],
    ] as const) {
      const withheld = decideWithheld(given(...drafts).state, what, 1, [BREACH]);
      const state = given(...drafts, ...withheld).state;
      expect(state.task).to.include({ status: 'awaiting_owner', dispatch_attempts: 0 });
      expect(state.task.error_message).to.equal(
        `Not handed to the agent runner: the description (by user ann) breaks prompt-override. Change the text, then set the status to ${again} again.`,
      );
      expect(state.asked).to.equal(null);
      expect(decideWithheld(state, what, 1, [BREACH]), 'once').to.deep.equal([]);
      expect(decideWithheld(given(...drafts).state, what, 2, [BREACH]), 'another run').to.deep.equal([]);
      const [event] = eventsOf(withheld);
      const shown = framesOf(taskWithheld as EventDefinition, event as DomainEvent);
      const security = shown.find(({ type }) => type === 'security.event');
      expect(security).to.include({ role: 'admin' });
      expect(security?.data).to.include({ event_type: 'injection_attempt', source: 'agent_runner' });
      expect(JSON.parse(String(security?.data.detail))).to.deep.include({ task_id: 7, kind: what, texts: [BREACH] });
      const { tasks, task_counts } = rowsAfter(tasksProjection, eventsOf([...drafts, ...withheld]));
      expect(tasks[0]).to.include({ status: 'awaiting_owner', asked: null, error_message: state.task.error_message });
      expect(task_counts.filter(({ count }) => count > 0).map(({ status }) => status)).to.deep.equal([
        'awaiting_owner',
      ]);
      expect(withheld[0]?.data).to.have.nested.property('before.status', before);
    }
  });

  it('are not sent to the runner, which gets the task once the text has changed', async () => {
    const world = memoryWorld();
    const commands = world.process();
    const stream = taskStream(1, 7);
    const sent: WorkRequest[] = [];
    const runner = {
      async work(request: WorkRequest) {
        sent.push(request);
        return answer({ status: 'accepted' });
      },
    } as unknown as Runner;
    const agent = { id: 5, name: 'ada', role: 'writer' };
    const task = { tenant: 1, workspace: 1, id: 7, unanswered: 0, agent_id: 5, agent: 'ada' };
    const reads = {
      ...{ assigned: async () => [task], forgotten: async () => [], reviewable: async () => [] },
      ...{ agent: async () => agent, prefix: async () => 'TASK', rejection: async () => null },
    };
    const [handler] = dispatchJobs({ commands, reads, runner, now: Date.now });
    const context = () => ({ origin: testOrigin });
    const turn = async () => {
      const before = world.written().length;
      await dispatchTasks({ commands, reads, locks: world.locks, now: Date.now });
      const asked = world
        .written()
        .slice(before)
        .find(({ type }) => type === 'TaskDispatched');
      const payload = {
        tenant: 1,
        workspace: 1,
        event: 'e',
        correlation: 'c',
        task: 7,
        run: asked?.data.run as number,
      };
      if (asked) await handler?.accept(payload)({ signal: new AbortController().signal, last: false } as JobRun);
      return asked !== undefined;
    };
    const state = async () => (await commands.load(taskDecider, stream)).state;
    for (const bad of [{ title: ATTACK }, { description: ATTACK }, { tags: ['a', ATTACK] }]) {
      const fields = { status: 'assigned', assigned_to: 'ada', ...bad };
      await world.process().record(stream, context(), [created(fields)]);
      expect(await turn()).to.equal(true);
      expect(sent).to.deep.equal([]);
      expect((await state()).task).to.include({ status: 'awaiting_owner' });
      expect(await turn(), 'it is not asked for again').to.equal(false);
      await world.process().record(stream, context(), [deleted()]);
    }
    await world.process().record(stream, context(), [created({ status: 'assigned', assigned_to: 'ada' })]);
    expect(await turn()).to.equal(true);
    expect(sent).to.have.length(1);
    expect(sent[0]?.prompt)
      .to.include('Mend the roof')
      .and.match(/\[begin [0-9a-f]{16}: title, by /);
    agent.role = ATTACK;
    await world.process().record(stream, context(), [deleted(), created({ status: 'assigned', assigned_to: 'ada' })]);
    await turn();
    expect(sent, 'the role of the agent').to.have.length(1);
  });
});

describe('tasks for the agent runner: rows', () => {
  const row = (...drafts: readonly Draft[]) => {
    const { tasks, task_counts } = rowsAfter(tasksProjection, eventsOf(drafts));
    const [place] = task_counts.filter(({ count }) => count > 0);
    return { ...tasks[0], counted: place?.status };
  };

  it('show what was requested of the runner, and count the task by its current status', () => {
    const first = dispatched();
    expect(row(...first)).to.deep.include({ asked: 'dispatch', status: 'in_progress', counted: 'in_progress' });
    const accepted = decideDispatchResponse(
      given(...first).state,
      1,
      answer({ status: 'accepted', sessionId: 's1' }),
      12,
    );
    expect(row(...first, ...accepted)).to.deep.include({ asked: 'accepted', status: 'in_progress' });
    expect(row(...first, ...accepted).metadata).to.deep.equal({ dispatch_session_id: 's1' });
    const done = decideDispatchResponse(given(...first).state, 1, answer({ sessionId: 's1' }), 12);
    expect(row(...first, ...done)).to.deep.include({
      ...{ asked: null, status: 'review', counted: 'review', outcome: 'success', resolution: 'It is dry.' },
    });
    const failed = decideDispatchFailed(given(...first).state, 1, 'no paper');
    expect(row(...first, ...failed)).to.deep.include({
      ...{ asked: null, status: 'assigned', counted: 'assigned', dispatch_attempts: 1, error_message: 'no paper' },
    });
    expect(row(...first, statusSet('in_progress', 'assigned')).asked).to.equal(null);
    const was = { status: 'in_progress', assigned_to: 'ada' };
    expect(row(...first, updated({ description: 'more' }, was)).asked).to.equal('dispatch');
    expect(row(...first, updated({ status: 'review' }, was)).asked).to.equal(null);
  });
});

describe('tasks for the agent runner: turns', () => {
  it('several processes dispatch each task once, within the limit of open dispatches', async () => {
    const world = memoryWorld();
    const ids = [1, 2, 3, 4, 5];
    for (const id of ids) {
      const { task } = waiting().data;
      await world
        .process()
        .execute(taskDecider, taskStream(1, id), { origin: testOrigin }, () => [
          { type: 'TaskCreated', data: { task_id: id, task, source: 'api' } },
        ]);
    }
    const asked = () => world.written().filter(({ type }) => type === 'TaskDispatched').length;
    const reads = (others: number) => ({
      assigned: async () => ids.map((id) => ({ tenant: 1, workspace: 1, id, ...ADA, unanswered: others + asked() })),
      reviewable: async () => [],
      forgotten: async () => [],
      agent: async () => undefined,
      ...{ prefix: async () => 'TASK', rejection: async () => null },
    });
    const turn = (others: number) =>
      dispatchTasks({ commands: world.process(), reads: reads(others), locks: world.locks, now: Date.now });
    expect(await turn(AT_ONCE)).to.equal(0);
    expect(await turn(AT_ONCE - 1)).to.equal(1);
    const turns = await Promise.all([turn(0), turn(0), turn(0)]);
    expect(turns.reduce((sum, one) => sum + one, 0)).to.equal(AT_ONCE - 1);
    expect(asked()).to.equal(AT_ONCE);
  });

  it('a dispatch without a response fails after two hours', async () => {
    const world = memoryWorld();
    const commands = world.process();
    await commands.execute(taskDecider, taskStream(1, 7), { origin: testOrigin }, () => dispatched() as EventDraft[]);
    const hidden = async () => [];
    const reads = {
      ...{
        assigned: hidden,
        reviewable: hidden,
        agent: async () => undefined,
        prefix: async () => '',
        rejection: async () => null,
      },
      forgotten: async () => [{ tenant: 1, workspace: 1, id: 7 }],
    };
    const status = async () => (await commands.load(taskDecider, taskStream(1, 7))).state.task.status;
    await dispatchTasks({ commands, reads, locks: world.locks, now: Date.now });
    expect(await status(), 'it was only just asked for').to.equal('in_progress');
    await dispatchTasks({ commands, reads, locks: world.locks, now: () => Date.now() + 2 * 3_600_000 + 60_000 });
    expect(await status()).to.equal('assigned');
  });
});
