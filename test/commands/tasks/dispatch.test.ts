/** Tasks for the agent runner: decisions, rows, and turns of several processes on one log in memory. */
import { expect } from 'chai';
import { AT_ONCE, dispatchTasks } from '../../../commands/policies/tasks/dispatch.ts';
import {
  decideDispatch,
  decideDispatchAnswer,
  decideDispatchFailed,
  isAsked,
  targetSession,
  taskPrompt,
} from '../../../commands/tasks/dispatch.ts';
import { taskDecider, taskStream } from '../../../commands/tasks/tasks.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import type { TaskData } from '../../../shared/events/tasks/tasks.ts';
import type { WorkAnswer } from '../../../shared/ports/runner.ts';
import { type Draft, eventsOf, rowsAfter, stateAfter } from '../../support/kit.ts';
import { memoryWorld } from '../../support/memory-world.ts';
import { created, deleted, requeued, statusSet, updated } from '../../support/tasks.ts';
import { testOrigin } from '../../support/world.ts';

const given = (...drafts: readonly Draft[]) => stateAfter(taskDecider, ...drafts);
const waiting = (fields: Partial<TaskData> = {}) => created({ status: 'assigned', assignedTo: 'ada', ...fields });
const dispatched = (fields: Partial<TaskData> = {}): Draft[] => [
  waiting(fields),
  ...decideDispatch(given(waiting(fields)), ADA),
];
const ADA = { agentId: 5, agent: 'ada' };
const answer = (fields: Partial<WorkAnswer> = {}): WorkAnswer => ({
  ...{ status: 'completed', output: 'It is dry.', error: null, sessionId: null },
  ...fields,
});

describe('tasks for the agent runner: decisions', () => {
  it('a task is dispatched once, while it waits for its agent', () => {
    const [draft, ...others] = decideDispatch(given(waiting()), ADA);
    expect(others).to.deep.equal([]);
    expect(draft?.data).to.deep.include({ taskId: 7, agentId: 5, agent: 'ada', run: 1 });
    const state = given(...dispatched());
    expect(state.task).to.deep.include({ status: 'in_progress', assignedTo: 'ada' });
    expect(state.asked).to.deep.equal({ what: 'dispatch', run: 1, agentId: 5, accepted: false });
    for (const drafts of [
      dispatched(),
      [waiting(), deleted()],
      [created({ assignedTo: 'ada' })],
      [waiting({ assignedTo: 'bob' })],
    ])
      expect(decideDispatch(given(...drafts), ADA)).to.deep.equal([]);
  });

  it('a result goes with a comment of the agent to the review', () => {
    const drafts = decideDispatchAnswer(given(...dispatched()), 1, answer({ sessionId: 's1' }), 12);
    expect(drafts.map(({ type }) => type)).to.deep.equal(['TaskDispatchCompleted', 'TaskCommented']);
    expect(drafts[0]?.data).to.deep.include({ agentId: 5, sessionId: 's1' });
    expect(drafts[1]?.data).to.deep.include({ commentId: 12, author: 'ada', content: 'It is dry.' });
    const state = given(...dispatched({ metadata: { kept: 1 } }), ...drafts);
    expect(state.task).to.deep.include({ status: 'review', outcome: 'success', resolution: 'It is dry.' });
    expect(state.task.metadata).to.deep.equal({ kept: 1, dispatch_session_id: 's1' });
    expect(state.asked).to.equal(null);
    const silent = decideDispatchAnswer(given(...dispatched()), 1, answer({ output: ' \n' }), 12);
    expect(silent.map(({ data }) => (data as { resolution: unknown }).resolution)).to.deep.equal([null]);
  });

  it('a task comes back until it has failed for good', () => {
    const failed = (before: number) => {
      const drafts = dispatched({ dispatchAttempts: before });
      return given(...drafts, ...decideDispatchFailed(given(...drafts), 1, 'no paper'));
    };
    for (const before of [0, 3])
      expect(failed(before).task).to.deep.include({ status: 'assigned', dispatchAttempts: before + 1 });
    expect(failed(4).task).to.deep.include({ status: 'failed', dispatchAttempts: 5, errorMessage: 'no paper' });
    const [draft] = decideDispatchAnswer(
      given(...dispatched()),
      1,
      answer({ status: 'failed', error: null, output: null }),
      12,
    );
    expect(draft?.data).to.deep.include({ errorMessage: 'The agent gave no reason.' });
  });

  it('an answer counts once, and only while the task is in the hands of this dispatch', () => {
    const first = dispatched();
    const done = decideDispatchAnswer(given(...first), 1, answer(), 12);
    const accepted = decideDispatchAnswer(given(...first), 1, answer({ status: 'accepted' }), 12);
    const back = decideDispatchFailed(given(...first), 1, 'no');
    const again = decideDispatch(given(...first, ...back), ADA);
    expect(again[0]?.data).to.deep.include({ run: 2 });
    for (const drafts of [
      [...first, ...done],
      [...first, ...accepted],
      [...first, ...back],
      [...first, ...back, ...again],
      [...first, deleted()],
      [...first, statusSet('in_progress', 'assigned'), statusSet('assigned', 'in_progress')],
      [...first, updated({ assignedTo: 'bob', status: 'in_progress' }, { assignedTo: 'ada', status: 'in_progress' })],
      [...first, requeued()],
    ]) {
      const state = given(...drafts);
      expect(isAsked(state, 'dispatch', 1)).to.equal(false);
      expect(decideDispatchAnswer(state, 1, answer(), 13)).to.deep.equal([]);
      expect(decideDispatchFailed(state, 1, 'no')).to.deep.equal([]);
    }
    const described = updated({ description: 'more' }, { status: 'in_progress', assignedTo: 'ada' });
    expect(isAsked(given(...first, described), 'dispatch', 1), 'its description says nothing of it').to.equal(true);
    expect(isAsked(given(...first), 'review', 1)).to.equal(false);
  });

  it('the agent is told the task, and why its last result came back', () => {
    const state = given(created({ description: 'It rains in.', tags: ['wood', 'art'] }));
    expect(taskPrompt(state, null)).to.equal('[Task TASK-003] Mend the roof\n\nIt rains in.\n\nTags: wood, art');
    expect(taskPrompt(given(created()), 'Still wet.')).to.equal(
      '[Task TASK-003] Mend the roof\n\nThe last result was rejected. Take this into account:\nStill wet.',
    );
    expect(targetSession(given(created({ metadata: { target_session: 's1' } })))).to.equal('s1');
    for (const target_session of [undefined, '', ' ', 7])
      expect(targetSession(given(created({ metadata: { target_session } })))).to.equal(null);
  });
});

describe('tasks for the agent runner: rows', () => {
  const row = (...drafts: readonly Draft[]) => {
    const { tasks, task_counts } = rowsAfter(tasksProjection, eventsOf(drafts));
    const [place] = task_counts.filter(({ count }) => count > 0);
    return { ...tasks[0], counted: place?.status };
  };

  it('know what the runner has been asked for, and count the task where it is', () => {
    const first = dispatched();
    expect(row(...first)).to.deep.include({ asked: 'dispatch', status: 'in_progress', counted: 'in_progress' });
    const accepted = decideDispatchAnswer(given(...first), 1, answer({ status: 'accepted', sessionId: 's1' }), 12);
    expect(row(...first, ...accepted)).to.deep.include({ asked: 'accepted', status: 'in_progress' });
    expect(row(...first, ...accepted).metadata).to.deep.equal({ dispatch_session_id: 's1' });
    const done = decideDispatchAnswer(given(...first), 1, answer({ sessionId: 's1' }), 12);
    expect(row(...first, ...done)).to.deep.include({
      ...{ asked: null, status: 'review', counted: 'review', outcome: 'success', resolution: 'It is dry.' },
      comment_count: 1,
    });
    const failed = decideDispatchFailed(given(...first), 1, 'no paper');
    expect(row(...first, ...failed)).to.deep.include({
      ...{ asked: null, status: 'assigned', counted: 'assigned', dispatch_attempts: 1, error_message: 'no paper' },
    });
    expect(row(...first, statusSet('in_progress', 'assigned')).asked).to.equal(null);
    const was = { status: 'in_progress', assignedTo: 'ada' };
    expect(row(...first, updated({ description: 'more' }, was)).asked).to.equal('dispatch');
    expect(row(...first, updated({ status: 'review' }, was)).asked).to.equal(null);
  });
});

describe('tasks for the agent runner: turns', () => {
  it('several processes at once dispatch each task once, and leave room for what is under way', async () => {
    const world = memoryWorld();
    const ids = [1, 2, 3, 4, 5];
    for (const id of ids) {
      const { task } = waiting().data;
      await world
        .process()
        .execute(taskDecider, taskStream(1, id), { origin: testOrigin }, () => [
          { type: 'TaskCreated', data: { taskId: id, task, source: 'api' } },
        ]);
    }
    const reads = (unanswered: number) => ({
      assigned: async () => ids.map((id) => ({ tenant: 1, workspace: 1, id, ...ADA, unanswered })),
      reviewable: async () => [],
      forgotten: async () => [],
      agent: async () => undefined,
      rejection: async () => null,
    });
    const turn = (unanswered: number) =>
      dispatchTasks({ commands: world.process(), reads: reads(unanswered), now: Date.now });
    expect(await turn(AT_ONCE)).to.equal(0);
    expect(await turn(1)).to.equal(AT_ONCE - 1);
    const turns = await Promise.all([turn(0), turn(0), turn(0)]);
    expect(turns.reduce((sum, one) => sum + one, 0)).to.equal(3);
    const events = world.written().filter(({ type }) => type === 'TaskDispatched');
    expect(events).to.have.length(ids.length);
  });

  it('a dispatch of which nothing is heard has failed after two hours', async () => {
    const world = memoryWorld();
    const commands = world.process();
    await commands.execute(taskDecider, taskStream(1, 7), { origin: testOrigin }, () => dispatched() as EventDraft[]);
    const hidden = async () => [];
    const reads = {
      ...{ assigned: hidden, reviewable: hidden, agent: async () => undefined, rejection: async () => null },
      forgotten: async () => [{ tenant: 1, workspace: 1, id: 7 }],
    };
    const status = async () => (await commands.load(taskDecider, taskStream(1, 7))).state.task.status;
    await dispatchTasks({ commands, reads, now: Date.now });
    expect(await status(), 'it was only just asked for').to.equal('in_progress');
    await dispatchTasks({ commands, reads, now: () => Date.now() + 2 * 3_600_000 + 60_000 });
    expect(await status()).to.equal('assigned');
  });
});
