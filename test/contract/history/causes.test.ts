/**
 * Causes: on a service that does everything that it does by itself, each event leads up to a request, a schedule or the
 * first start, without a gap; and what followed from an event is found from it.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { causesResponse } from '../../../shared/contract/history/causes.ts';
import { fixture } from '../../support/fixture.ts';
import { startReceiver } from '../../support/receiver.ts';
import { startRunner } from '../../support/runner.ts';
import { bodyOf } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { startPipelinesWorld } from '../../support/worlds/pipelines.ts';

interface Shown {
  readonly id: string;
  readonly index: number;
  readonly type: string;
  readonly stream: string;
  readonly actor: { readonly type: string; readonly name: string };
  readonly meta: {
    readonly requestId: string | null;
    readonly causationId: string | null;
    readonly correlationId: string;
  };
}

interface Effect extends Shown {
  readonly effects: readonly Effect[];
}

/** Types that jobs and policies write because of another event. */
const FROM_EVENTS = [
  'PipelineStepCompleted',
  'PipelineStepFailed',
  'PipelineRunCompleted',
  'PipelineRunRemoved',
  'TaskDispatchCompleted',
  'TaskDispatchFailed',
  'TaskVerdictGiven',
  'WebhookTripped',
];
/** Types that schedules write. */
const FROM_SCHEDULES = ['TaskDispatched', 'TaskReviewRequested', 'TaskRouted', 'AlertRuleTriggered'];
/** Types that they write once a minute has passed. */
const FROM_MINUTES = ['CronRunStarted', 'TaskRecurred'];

/** How many events of each type are looked at, from the beginning and from the end. */
const OF_EACH = 3;

const valuesOf = (effects: readonly Effect[]): Effect[] => effects.flatMap((one) => [one, ...valuesOf(one.effects)]);

describe('/api/history/causes', function () {
  this.timeout(180_000);
  const runner = fixture(startRunner);
  const receiver = fixture(startReceiver);
  const world = fixture(() =>
    startPipelinesWorld({
      RUNNER_URL: runner.url,
      RUNNER_TOKEN: 'runner-token',
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      MC_WEBHOOK_MAX_RETRIES: '1',
    }),
  );
  /** Each use of the global key is an event itself. */
  let admin: string;
  let all: readonly Shown[];
  before(async () => {
    receiver.react(({ path }) => ({ status: path.endsWith('/broken') ? 500 : 200 }));
    admin = await world.world.makeSession({ username: 'vera', role: 'admin' });
    await busyRun();
    all = await log();
  });

  const get = (path: string) => world.ask('GET', `/api/history/${path}`, undefined, admin);
  const causesOf = async (id: string, more = '') => bodyOf(await get(`causes/${id}${more}`));

  async function log(): Promise<Shown[]> {
    const events: Shown[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const { body } = await get(`events?limit=1000&after=${after}`);
      events.push(...body.events);
      after = body.next_after;
    }
    return events;
  }

  async function busyRun(): Promise<void> {
    const { ask } = world;
    const turn = async (task_id: string) => (await ask('POST', '/api/scheduler', { task_id })).body;
    const typesNow = async () => new Set((await log()).map(({ type }) => type));
    const made = async (path: string, body: object) => bodyOf(await ask('POST', path, body), 200, 201);
    await made('/api/webhooks', { name: 'good', url: `${receiver.url}/good`, events: ['*'] });
    await made('/api/webhooks', { name: 'broken', url: `${receiver.url}/broken`, events: ['*'] });
    const agent = (await made('/api/agents', { name: 'worker', role: 'coder' })).agent;
    await made('/api/agents', { name: 'other', role: 'writer' });
    await ask('POST', `/api/agents/${agent.id}/heartbeat`, {});
    await made('/api/alerts', {
      ...{ name: 'busy', entity_type: 'agent', condition_field: 'name', condition_operator: 'equals' },
      ...{ condition_value: 'worker', action_type: 'webhook', action_config: { url: `${receiver.url}/alert` } },
    });
    runner.react(({ body }) => {
      if (body.kind === 'review') return { body: { status: 'completed', output: 'VERDICT: APPROVED\nNOTES: fine' } };
      if (String(body.prompt).includes('hopeless')) return { body: { status: 'failed', error: 'no way' } };
      return { body: { status: 'completed', output: 'done' } };
    });
    const good = await world.pipeline();
    await world.start(good.id);
    const bad = await world.pipeline([await world.template('hopeless'), await world.template()]);
    await world.start(bad.id);
    for (const title of ['one', 'hopeless']) await made('/api/tasks', { title, assigned_to: 'worker' });
    await made('/api/tasks', { title: 'for anybody who writes', description: 'write code' });
    await until(
      'everything has happened',
      async () => {
        for (const id of ['task_auto_route', 'task_dispatch', 'aegis_review', 'alert_evaluation', 'webhook_retry'])
          await turn(id);
        const types = await typesNow();
        return [...FROM_EVENTS, ...FROM_SCHEDULES].every((type) => type === 'PipelineRunRemoved' || types.has(type));
      },
      60_000,
    );
    expect((await ask('DELETE', '/api/pipelines', { id: good.id })).status).to.equal(200);
    await until('the runs are removed', async () => (await typesNow()).has('PipelineRunRemoved'));
    const project = (await made('/api/projects', { name: 'Doomed' })).project;
    await made('/api/tasks', { title: 'moved', project_id: project.id });
    await ask('DELETE', `/api/projects/${project.id}?mode=delete`);
    const workspace = (await made('/api/workspaces', { name: 'Lab', slug: 'lab' })).workspace;
    await ask('DELETE', `/api/workspaces/${workspace.id}`, {});
    await made('/api/cron', { action: 'add', jobName: 'minutely', schedule: '* * * * *', command: 'sweep the floor' });
    const recurrence = { enabled: true, cron_expr: '* * * * *' };
    await made('/api/tasks', { title: 'every minute', metadata: { recurrence } });
    await later(async () => {
      const { tasks } = (await ask('GET', '/api/scheduler')).body;
      for (const { id } of tasks) await turn(id);
      await until('jobs and recurring tasks have run', async () => {
        const types = await typesNow();
        return ['CronRunEnded', ...FROM_MINUTES].every((type) => types.has(type));
      });
    });
    expect((await made('/api/cron', { action: 'trigger', name: 'minutely' })).ran).to.equal(true);
  }

  /** Does work while the clock of the service is two minutes ahead. */
  async function later(work: () => Promise<void>): Promise<void> {
    const { now } = Date;
    Date.now = () => now() + 120_000;
    try {
      await work();
    } finally {
      Date.now = now;
    }
  }

  /** The first and last ones of each type: those of a type by a request and those by a schedule are far apart. */
  const ofEachType = (events: readonly Shown[]): Shown[] =>
    [...new Set(events.map(({ type }) => type))].flatMap((type) => {
      const own = events.filter((one) => one.type === type);
      return [...new Set([...own.slice(0, OF_EACH), ...own.slice(-OF_EACH)])];
    });

  it('of events of every type in a busy run lead without gaps to a request, a schedule or the first start', async () => {
    const byId = new Map(all.map((event) => [event.id, event]));
    const kinds = new Map<string, number>();
    for (const event of ofEachType(all)) {
      const reply = await causesOf(event.id);
      expect(causesResponse.parse(reply)).to.deep.equal(reply);
      const first = reply.causes.at(-1);
      expect(first.kind, JSON.stringify(event)).to.be.oneOf(['request', 'schedule', 'first start']);
      kinds.set(first.kind, (kinds.get(first.kind) ?? 0) + 1);
      // The chain as the events themselves tell it.
      let last = event;
      for (const cause of reply.causes.slice(0, -1)) {
        expect(cause).to.include({ kind: 'event', id: last.meta.causationId });
        expect(cause.index).to.be.below(last.index);
        last = byId.get(cause.id) as Shown;
      }
      expect(byId.has(last.meta.causationId ?? ''), 'the chain goes on').to.equal(false);
      if (first.kind === 'request') {
        expect(last.meta.causationId).to.equal(last.meta.requestId);
        expect(first.id).to.equal(last.meta.requestId);
      } else {
        expect(last.meta.causationId, JSON.stringify(last)).to.equal(null);
        expect(first.id).to.equal(last.meta.correlationId);
      }
    }
    expect([...kinds.keys()]).to.have.members(['request', 'schedule', 'first start']);
  });

  it('of events from jobs and policies are events, and of scheduled ones the schedule', async () => {
    for (const type of FROM_EVENTS) {
      const event = all.find((one) => one.type === type) as Shown;
      expect(event, type).not.to.equal(undefined);
      const { causes } = await causesOf(event.id);
      expect(causes[0].kind, type).to.equal('event');
    }
    for (const type of [...FROM_SCHEDULES, ...FROM_MINUTES]) {
      const event = all.find((one) => one.type === type) as Shown;
      const { causes } = await causesOf(event.id);
      expect(causes[0], type).to.include({ kind: 'schedule' });
    }
  });

  it('are the inverse of effects', async () => {
    const caused = all.filter(({ meta }) => all.some(({ id }) => id === meta.causationId));
    expect(caused.length).to.be.above(5);
    for (const event of ofEachType(caused)) {
      const { causes } = await causesOf(event.id);
      for (const cause of causes.filter(({ kind }: { kind: string }) => kind === 'event')) {
        const { effects, effects_complete } = await causesOf(cause.id);
        expect(effects_complete).to.equal(true);
        expect(valuesOf(effects).map(({ id }) => id)).to.include(event.id);
      }
    }
    const leaf = all.find(({ type }) => type === 'TenantCreated') as Shown;
    expect((await causesOf(leaf.id)).effects).to.deep.equal([]);
  });

  it('of a webhook message are those of its event, with the actor and the client', async () => {
    const message = await until('a message about the trigger', () => receiver.of('alert.triggered')[0]);
    const id = message.headers['webhook-id'] as string;
    const { event, causes } = await causesOf(id);
    expect(event.type).to.equal('AlertRuleTriggered');
    expect(causes[0]).to.include({ kind: 'schedule' });
    const created = all.find(({ type }) => type === 'AgentRegistered') as Shown;
    const [first] = (await causesOf(created.id, '?open=1')).causes;
    expect(first).to.deep.include({ kind: 'request', actor: { type: 'api', id: 0, name: 'api' }, user_agent: 'node' });
    expect(first.ip).to.match(/^\d+\.\d+\.\d+\.\d+$/);
    expect((await causesOf(created.id)).causes[0].ip).to.have.keys('sealed', 'person', 'box');
  });

  it('of an unknown event return 404, and of a malformed id 400', async () => {
    expect((await get(`causes/${randomUUID()}`)).status).to.equal(404);
    for (const id of ['x', 'msg_x', `msg_${randomUUID()}`])
      expect((await get(`causes/${id}`)).status, id).to.equal(400);
  });
});
