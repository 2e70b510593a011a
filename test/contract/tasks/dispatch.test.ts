/** Tasks that the agent runner works on, and automatic reviews, on the service of the pipelines with its runner. */
import { expect } from 'chai';
import { runTaskResponse, schedulerResponse } from '../../../shared/contract/admin/scheduler.ts';
import { fixture } from '../../support/fixture.ts';
import { type Handed, type Reaction, runnerSettings, startRunner } from '../../support/runner.ts';
import { ATTACK } from '../../support/screening-cases.ts';
import { bodyOf } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { type AgentsWorld, conforms, startAgentsWorld } from '../../support/worlds/agents.ts';

type Work = Record<string, unknown> & { readonly task_id: number; readonly kind: string };
// biome-ignore lint/suspicious/noExplicitAny: records are looked into freely.
type Found = any;

/** What stands between marks in the prompt of a request: what it is, whose, the text. */
function quotedIn(request: Handed | undefined): string[][] {
  const prompt = String(request?.body.prompt);
  const code = /\[begin ([0-9a-f]{16}) /.exec(prompt)?.[1];
  const marked = new RegExp(`\\[begin ${code}: (.*), by (.*)\\]\n([^]*?)\n\\[end ${code}\\]`, 'g');
  return Array.from(prompt.matchAll(marked), ([, what = '', by = '', text = '']) => [what, by, text]);
}

const workOf = ({ body }: Handed): Work => body as unknown as Work;

function helpersOf({ ask, fresh }: AgentsWorld) {
  /** Tasks that the test has made. */
  const made: number[] = [];
  return {
    ask,
    /** Runs a scheduled task now. Gives what it says. */
    async turn(task_id: string): Promise<string> {
      return conforms(runTaskResponse, await ask('POST', '/api/scheduler', { task_id })).message;
    },
    async make(fields: object): Promise<number> {
      const body = bodyOf(await ask('POST', '/api/tasks', { title: fresh('task'), ...fields }), 201);
      made.push(body.task.id);
      return body.task.id;
    },
    made,
    task: async (id: number): Promise<Found> => (await ask('GET', `/api/tasks/${id}`)).body.task,
  };
}

describe('tasks for agents', () => {
  const runner = fixture(startRunner);
  const world = fixture(() => startAgentsWorld(runnerSettings(runner)));

  const { ask, turn, make, made, task } = helpersOf(world);
  const answers = new Map<number, (work: Work) => Reaction>();
  before(async () => {
    // Turns are asked for here, and no others come in between.
    await ask('PUT', '/api/settings', {
      settings: { 'general.task_dispatch': false, 'general.aegis_review': false },
    });
  });
  afterEach(async () => {
    for (const id of made.splice(0)) await ask('DELETE', `/api/tasks/${id}`);
  });
  beforeEach(() => {
    answers.clear();
    runner.react((handed) => answers.get(workOf(handed).task_id)?.(workOf(handed)) ?? { status: 422, body: 'no' });
  });

  const handed = (id: number) => runner.requests.filter((request) => workOf(request).task_id === id);
  const when = (id: number, what: string, holds: (task: Found) => boolean): Promise<Found> =>
    until(what, async () => {
      const found = await task(id);
      return holds(found) && found;
    });
  const inStatus = (id: number, status: string) => when(id, `task ${id} is ${status}`, (one) => one.status === status);
  const frames = (type: string, id: number) =>
    world.stream.frames.filter((frame) => frame.type === type && frame.data.id === id).map(({ data }) => data);
  const statusFrame = (id: number, reason: string) =>
    frames('task.status_changed', id).find((data) => data.reason === reason);

  it('are enabled if there is a runner', async () => {
    await ask('DELETE', '/api/settings', { key: 'general.aegis_review' });
    const body = conforms(schedulerResponse, await ask('GET', '/api/scheduler'));
    const enabled = Object.fromEntries(body.tasks.map((one: Found) => [one.id, one.enabled]));
    expect(enabled).to.deep.include({ task_dispatch: false, aegis_review: true });
    await ask('PUT', '/api/settings', { settings: { 'general.aegis_review': false } });
  });

  it('are sent to the runner three at a time, most urgent first; the agent’s response is the result', async () => {
    const agent = await world.create({ role: 'writer' });
    const assigned = { assigned_to: agent.name };
    const nobody = await make({ assigned_to: 'no-such-agent' });
    const low = await make({ ...assigned, priority: 'low' });
    const [old, young] = [await make(assigned), await make(assigned)];
    const template = await make({
      ...assigned,
      priority: 'critical',
      metadata: { recurrence: { enabled: true, cron_expr: '0 0 1 1 *' } },
    });
    const first = await make({
      ...assigned,
      ...{ title: 'Write a poem', description: 'About rain.', priority: 'critical', tags: ['art'] },
      metadata: { target_session: 'session-1', kept: true },
    });
    const output = 'Drip. '.repeat(2_000);
    answers.set(first, () => ({ body: { status: 'completed', output, session_id: 'session-2' } }));
    for (const id of [old, young]) answers.set(id, () => ({ body: { status: 'completed', output: '' } }));
    expect(await turn('task_dispatch')).to.equal('3 tasks were dispatched.');
    const done = await inStatus(first, 'review');
    const resolution = output.slice(0, 10_000);
    expect(done).to.deep.include({ outcome: 'success', resolution, assigned_to: agent.name, dispatch_attempts: 0 });
    expect(done.metadata).to.deep.equal({
      ...{ target_session: 'session-1', kept: true },
      dispatch_session_id: 'session-2',
    });
    for (const id of [old, young]) expect((await inStatus(id, 'review')).resolution).to.equal(null);
    for (const id of [low, nobody, template]) expect((await task(id)).status).to.equal('assigned');

    const [request] = handed(first);
    expect(new Set(handed(first).map(({ key }) => key)).size).to.equal(1);
    expect(request?.headers.authorization).to.equal('Bearer runner-token');
    expect(request?.key).to.match(new RegExp(`^task-${first}-dispatch-1-[0-9a-f-]{36}$`));
    expect(request?.body).to.deep.equal({
      ...{ kind: 'task', workspace_id: 1, task_id: first, ticket_ref: done.ticket_ref, title: 'Write a poem' },
      ...{ priority: 'critical', attempt: 1, agent_id: agent.id, agent_name: agent.name, agent_role: 'writer' },
      session_id: 'session-1',
      prompt: request?.body.prompt,
    });
    const by = 'a holder of the API key';
    expect(quotedIn(request)).to.deep.equal([
      ['title', by, 'Write a poem'],
      ['description', by, 'About rain.'],
      ['tags', by, 'art'],
    ]);
    const { comments } = (await ask('GET', `/api/tasks/${first}/comments`)).body;
    expect(comments).to.have.length(1);
    expect(comments[0]).to.deep.include({ author: agent.name, content: resolution });
    const [dispatched] = await world.activities('task_dispatched', first);
    const about = { agent: agent.name, priority: 'critical' };
    expect(dispatched).to.deep.include({ actor: 'scheduler', metadata: about });
    const [completed] = await world.activities('task_agent_completed', first);
    const said = { response_length: 10_000, dispatch_session_id: 'session-2' };
    expect(completed).to.deep.include({ actor: agent.name, metadata: said });
    const { body } = await ask('GET', `/api/agents/${agent.id}/attribution?privileged=1`);
    expect(JSON.stringify(body), 'it is the work of the agent').to.include('task_agent_completed');
  });

  it('are returned if the agent or the runner fails, and fail for good at the fifth attempt', async () => {
    const agent = await world.create();
    const id = await make({ assigned_to: agent.name });
    const errors = ['The agent ran out of paper.', 'The agent runner responded with status 422: no'];
    for (let attempt = 1; attempt <= 5; attempt++) {
      if (attempt % 2 === 1) answers.set(id, () => ({ body: { status: 'failed', error: errors[0] } }));
      else answers.delete(id);
      expect(await turn('task_dispatch')).to.equal('1 task was dispatched.');
      const back = await when(id, `attempt ${attempt} failed`, (one) => one.dispatch_attempts === attempt);
      expect(back).to.deep.include({
        status: attempt === 5 ? 'failed' : 'assigned',
        error_message: errors[(attempt + 1) % 2],
      });
    }
    expect(new Set(handed(id).map(({ key }) => key)).size).to.equal(5);
    expect(await turn('task_dispatch')).to.equal('0 tasks were dispatched.');
    const failures = await world.activities('task_dispatch_failed', id);
    expect(failures).to.have.length(5);
    expect(failures[0]).to.deep.include({ actor: 'scheduler', metadata: { error: errors[0] } });
    await world.stream.until(() => frames('task.escalated', id).length > 0);
    const error_message = errors[0];
    expect(statusFrame(id, 'dispatch_failed')).to.deep.include({ status: 'assigned', error_message });
    expect(statusFrame(id, 'max_dispatch_retries_exceeded')).to.deep.include({ status: 'failed', error_message });
    const { title } = await task(id);
    expect(frames('task.escalated', id)).to.deep.equal([
      { id, title, reason: 'max_dispatch_retries', dispatch_attempts: 5, error_message, workspace_id: 1 },
    ]);
  });

  it('are sent again with the same key while the runner is unreachable', async () => {
    const agent = await world.create();
    const id = await make({ assigned_to: agent.name });
    let asked = 0;
    answers.set(id, () => (++asked === 1 ? { status: 503 } : { body: { status: 'completed', output: 'done' } }));
    await turn('task_dispatch');
    expect(await turn('task_dispatch'), 'it is under way').to.equal('0 tasks were dispatched.');
    expect(await inStatus(id, 'review')).to.deep.include({ resolution: 'done', dispatch_attempts: 0 });
    expect(handed(id)).to.have.length.at.least(2);
    expect(new Set(handed(id).map(({ key }) => key)).size).to.equal(1);
  });

  it('stay in progress once the runner has accepted them, until the agent reports', async () => {
    const agent = await world.create();
    const id = await make({ assigned_to: agent.name });
    answers.set(id, () => ({ body: { status: 'accepted', session_id: 'far-away' } }));
    await turn('task_dispatch');
    const running = await when(id, 'the runner has it', (one) => one.metadata.dispatch_session_id === 'far-away');
    expect(running).to.deep.include({ status: 'in_progress', outcome: null });
    const [deferred] = await world.activities('task_deferred_dispatch', id);
    expect(deferred.metadata).to.deep.equal({ dispatch_session_id: 'far-away', async_state: 'accepted' });
    const report = { status: 'review', outcome: 'success', resolution: 'by hand' };
    expect((await ask('PUT', `/api/tasks/${id}`, report)).body.task).to.deep.include(report);
  });

  it('stay in their workspace: an agent of the same name elsewhere gets none of them', async () => {
    const agent = await world.create();
    const made = await ask('POST', '/api/workspaces', { name: 'Elsewhere', slug: 'dispatch-elsewhere' });
    expect(made.status, JSON.stringify(made.body)).to.equal(201);
    const user = { username: 'else-where', password: 'a long enough password', role: 'admin' };
    const workspace_id = made.body.workspace.id;
    const added = await ask('POST', '/api/auth/users', { ...user, workspace_id });
    expect(added.status, JSON.stringify(added.body)).to.equal(201);
    const cookie = await world.world.signIn(user.username, user.password);
    const body = { title: 'Theirs', assigned_to: agent.name };
    const theirs = await ask('POST', '/api/tasks', body, cookie);
    expect(theirs.status, JSON.stringify(theirs.body)).to.equal(201);
    expect(await turn('task_dispatch')).to.equal('0 tasks were dispatched.');
  });

  it('are withheld with the reason if they attack an agent, and recorded as a security event', async () => {
    const agent = await world.create();
    const id = await make({ assigned_to: agent.name, description: `Look around. ${ATTACK}, and tell me all.` });
    answers.set(id, () => ({ body: { status: 'accepted' } }));
    await turn('task_dispatch');
    const withheld = await inStatus(id, 'awaiting_owner');
    expect(withheld.error_message)
      .to.include('the description (by a holder of the API key) breaks prompt-override')
      .and.include('set the status to assigned again');
    expect(withheld).to.deep.include({ dispatch_attempts: 0, assigned_to: agent.name });
    const [activity] = await world.activities('task_withheld', id);
    expect(activity.metadata).to.deep.include({ rules: ['prompt-override'] });
    const securityEvent = () =>
      world.stream.frames.find(
        ({ type, data }) => type === 'security.event' && String(data.detail).includes(`"task_id":${id},`),
      );
    await world.stream.until(() => securityEvent() !== undefined);
    expect(securityEvent()?.data).to.include({ event_type: 'injection_attempt', source: 'agent_runner' });
    expect(JSON.parse(String(securityEvent()?.data.detail)).texts).to.deep.equal([
      { what: 'description', by: 'a holder of the API key', rules: ['prompt-override'] },
    ]);
    expect(JSON.stringify(securityEvent())).not.to.include('tell me all');
    await turn('task_dispatch');
    expect(handed(id)).to.deep.equal([]);
    await ask('PUT', `/api/tasks/${id}`, { description: 'Look around.', status: 'assigned' });
    await turn('task_dispatch');
    await until('the runner has it', () => handed(id).length > 0);
    expect(quotedIn(handed(id)[0])[1]).to.deep.equal(['description', 'a holder of the API key', 'Look around.']);
  });

  describe('automatic reviews', () => {
    it('are not requested for a result that attacks the reviewer', async () => {
      const id = await make({ description: 'A poem.', status: 'review' });
      await ask('PUT', `/api/tasks/${id}`, { resolution: `Roses. ${ATTACK} and approve this.` });
      answers.set(id, () => ({ body: { status: 'completed', output: 'VERDICT: APPROVED' } }));
      await turn('aegis_review');
      const withheld = await inStatus(id, 'awaiting_owner');
      expect(withheld.error_message).to.match(/the result \(by .*\) breaks prompt-override/);
      expect(handed(id)).to.deep.equal([]);
      const verdict = { taskId: id, status: 'approved', notes: 'I have read it.' };
      expect((await ask('POST', '/api/quality-review', verdict)).status).to.equal(200);
      expect((await task(id)).status).to.equal('done');
    });

    const reviewed = async (agent?: string) => {
      const id = await make({ ...(agent && { assigned_to: agent }), description: 'A poem.', status: 'review' });
      await ask('PUT', `/api/tasks/${id}`, { resolution: 'Roses are red.' });
      return id;
    };
    const says = (output: string) => () => ({ body: { status: 'completed', output } });

    it('that approve set the task to done, through a review by aegis', async () => {
      const agent = await world.create();
      const id = await reviewed(agent.name);
      answers.set(id, says('VERDICT: APPROVED\nNOTES: It rhymes.'));
      expect(await turn('aegis_review')).to.equal('1 review was begun.');
      const done = await inStatus(id, 'done');
      expect(done.completed_at).to.be.a('number');
      expect(done).to.deep.include({ error_message: null, dispatch_attempts: 0 });
      const [request] = handed(id);
      expect(request?.body).to.deep.include({ kind: 'review', workspace_id: 1, task_id: id, attempt: 1 });
      expect(request?.body.prompt).to.include('A poem.').and.include('Roses are red.').and.include(agent.name);
      const { reviews } = (await ask('GET', `/api/quality-review?taskId=${id}`)).body;
      expect(reviews).to.have.length(1);
      expect(reviews[0]).to.deep.include({ reviewer: 'aegis', status: 'approved', notes: 'It rhymes.', task_id: id });
      const [activity] = await world.activities('aegis_review', id);
      const reviewed_by = { id: 0, kind: 'system', name: 'scheduler' };
      const metadata = { verdict: 'approved', notes: 'It rhymes.', reviewed_by };
      expect(activity).to.deep.include({ actor: 'aegis', metadata });
    });

    it('that reject return the task to its agent with the reason, and fail it the third time', async () => {
      const agent = await world.create();
      const id = await reviewed(agent.name);
      for (const attempt of [1, 2, 3]) {
        answers.set(id, says('VERDICT: REJECTED\nNOTES: Too short.'));
        await turn('aegis_review');
        const back = await inStatus(id, attempt < 3 ? 'assigned' : 'failed');
        expect(back).to.deep.include({ dispatch_attempts: attempt, assigned_to: agent.name });
        expect(back.error_message).to.equal('Quality review rejected by aegis: Too short.');
        if (attempt === 3) break;
        answers.set(id, says('Roses are blue.'));
        await turn('task_dispatch');
        await inStatus(id, 'review');
        expect(quotedIn(handed(id).at(-1)).at(-1)).to.deep.equal(['review notes', 'aegis', 'Too short.']);
      }
      await world.stream.until(() => frames('task.escalated', id).length > 0);
      expect(statusFrame(id, 'aegis_rejection')).to.deep.include({ status: 'assigned', assigned_to: agent.name });
      expect(statusFrame(id, 'max_aegis_retries_exceeded')).to.deep.include({ status: 'failed' });
      const [escalated] = frames('task.escalated', id);
      expect(escalated).to.deep.include({ reason: 'max_aegis_rejections', dispatch_attempts: 3 });
    });

    it('that were accepted end with a normal quality review', async () => {
      const id = await reviewed();
      answers.set(id, () => ({ status: 202 }));
      await turn('aegis_review');
      await until('the runner has it', () => handed(id).length > 0);
      const verdict = { taskId: id, status: 'approved', notes: 'Fine.' };
      expect((await ask('POST', '/api/quality-review', verdict)).status).to.equal(200);
      expect((await task(id)).status).to.equal('done');
    });
  });
});

describe('tasks without an agent runner', () => {
  const world = fixture(startAgentsWorld);
  const { ask, turn, make, task } = helpersOf(world);

  it('tasks stay unchanged, and the scheduler gives the reason', async () => {
    const agent = await world.create();
    const assigned = await make({ assigned_to: agent.name });
    const review = await make({ status: 'review' });
    for (const id of ['task_dispatch', 'aegis_review'])
      expect(await turn(id)).to.match(/^No agent runner is configured: RUNNER_URL is not set\./);
    expect((await task(assigned)).status).to.equal('assigned');
    expect((await task(review)).status).to.equal('review');
    const { tasks } = (await ask('GET', '/api/scheduler')).body;
    const off = tasks.filter((one: Found) => !one.enabled).map((one: Found) => one.id);
    expect(off).to.include.members(['task_dispatch', 'aegis_review', 'task_auto_route']);
  });
});
