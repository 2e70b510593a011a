/** Backtests: the same triggers as evaluating every minute would have given, from a bounded number of events. */
import { expect } from 'chai';
import fc from 'fast-check';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { leasesProjection } from '../../../projections/agents/leases.ts';
import { activitiesProjection } from '../../../projections/monitoring/activities.ts';
import { sessionsProjection } from '../../../projections/sessions.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { BACKTEST_BOUNDS, type BacktestParts, backtest, createBacktests } from '../../../queries/alerts/backtests.ts';
import type { Condition, Cooldown } from '../../../shared/contract/alerts/conditions.ts';
import { agentDeleted, agentDetailsChanged, agentStatusChanged } from '../../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived, heartbeatsReceived } from '../../../shared/events/agents/heartbeat.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import { sessionControlled, sessionReported } from '../../../shared/events/sessions.ts';
import { taskStatusChanged } from '../../../shared/events/tasks/changes.ts';
import { placeOf, taskDeleted } from '../../../shared/events/tasks/tasks.ts';
import { HOUR, MINUTE } from '../../../shared/time.ts';
import { triggersOf } from '../../support/alerts.ts';
import { EvidenceReader } from '../../support/evidence.ts';
import { checkAlerts } from '../../support/evidence-checks.ts';
import { type Draft, eventsOf, registeredAgent, sample } from '../../support/kit.ts';
import { readModels, type Told } from '../../support/rows.ts';
import { runs } from '../../support/runs.ts';
import { createdAs, TASK } from '../../support/tasks.ts';

const PROJECTIONS = [leasesProjection, agentsProjection, tasksProjection, sessionsProjection, activitiesProjection];

/** Something that happens to one of a few records; what makes no sense then does not happen. */
interface Step {
  readonly kind: 'agent' | 'task' | 'session';
  readonly record: number;
  readonly what: 'make' | 'status' | 'touch' | 'rename' | 'remove' | 'beat';
  readonly value: string;
  /** Seconds since the step before. */
  readonly after: number;
}

const STATUSES = ['idle', 'busy', 'offline', 'error'];

/** One log for all tests, as events in memory and as rows in the database. */
class History {
  readonly events: DomainEvent[] = [];
  readonly told: Told[] = [];
  readonly #revisions = new Map<string, number>();
  readonly #alive = new Map<string, string>();
  readonly #madeAt = new Map<string, number>();
  clock: number;

  constructor(startAt: number) {
    this.clock = startAt;
  }

  add(workspace: number, stream: string, draft: Draft): void {
    const meta = { workspace, at: this.clock * 1_000 };
    const [event] = eventsOf([draft], meta) as [DomainEvent];
    const revision = this.#revisions.get(stream) ?? 0;
    if (revision === 0) this.#madeAt.set(stream, this.clock);
    this.#revisions.set(stream, revision + 1);
    const position = this.events.length + 1;
    const number = position;
    this.events.push({ ...event, meta: { ...event.meta, number }, stream, revision, position });
    this.told.push([draft, { ...meta, number }]);
  }

  /** A summary now of a heartbeat `before` seconds ago, but not before the agent was there. */
  beat(workspace: number, id: number, before: number): void {
    const from = Math.max(this.clock - before, this.#madeAt.get(`agent-${workspace}-${id}`) ?? this.clock);
    const [window, part] = [this.events.length + 1, 0];
    const draft = heartbeatsReceived.draft({ window, part, from, to: from, agents: [[id, 1, 0, 0]], connections: [] });
    this.add(workspace, `liveness-${workspace}`, draft);
  }

  take(workspace: number, { kind, record, what, value, after }: Step): void {
    this.clock += after;
    const id = workspace * 100 + record;
    const stream = `${kind}-${workspace}-${id}`;
    const status = this.#alive.get(stream);
    if (what === 'make' ? status !== undefined : status === undefined) return;
    if (what === 'beat') {
      if (kind === 'agent' && status !== 'gone') this.beat(workspace, id, value.length * 60);
      return;
    }
    const draft = { agent: agentDraft, task: taskDraft, session: sessionDraft }[kind](id, what, value, status ?? '');
    if (!draft) return;
    // Agents and tasks that are gone do not come back; sessions do.
    if (what === 'remove') {
      if (kind === 'session') this.#alive.delete(stream);
      else this.#alive.set(stream, 'gone');
    } else if (status !== 'gone')
      this.#alive.set(stream, what === 'touch' || what === 'rename' ? (status ?? '') : value);
    if (status !== 'gone') this.add(workspace, stream, draft);
  }
}

function agentDraft(agentId: number, what: Step['what'], value: string, status: string): Draft {
  const about = { agent_id: agentId, name: `agent-${agentId}` };
  switch (what) {
    case 'make':
      return registeredAgent({ ...about, status: value as 'idle', role: value });
    case 'status':
      return sample(agentStatusChanged, { ...about, from: status, to: value, cause: 'update', seen: true });
    case 'touch':
      return sample(agentHeartbeatReceived, { ...about, last_activity: value });
    case 'rename':
      return sample(agentDetailsChanged, { ...about, ...{ changes: { role: value }, via: 'id' } });
    default:
      return agentDeleted.draft({ ...about, role: 'x', remove_workspace: false });
  }
}

function taskDraft(taskId: number, what: Step['what'], value: string, status: string): Draft | undefined {
  const about = { task_id: taskId, title: TASK.title };
  switch (what) {
    case 'make':
      return createdAs(taskId, { status: value });
    case 'status':
      return sample(taskStatusChanged, {
        ...about,
        ...{ before: { ...placeOf(TASK), status }, after: { ...placeOf(TASK), status: value } },
        cause: 'bulk',
      });
    case 'remove':
      return taskDeleted.draft({ ...about, before: { ...placeOf(TASK), status } });
    default:
      return undefined;
  }
}

function sessionDraft(id: number, what: Step['what'], value: string): Draft {
  const sessionId = `s-${id}`;
  if (what === 'remove') return sessionControlled.draft({ id, session_id: sessionId, action: 'delete', value: null });
  if (what === 'rename')
    return sessionControlled.draft({ id, session_id: sessionId, action: 'terminate', value: null });
  return sample(sessionReported, {
    id,
    session_id: sessionId,
    // What is not reported stays as it was.
    model: what === 'touch' ? null : value,
    input_tokens: what === 'touch' ? null : value.length,
  });
}

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('agent' as const, 'task' as const, 'session' as const),
    record: fc.integer({ min: 1, max: 4 }),
    what: fc.constantFrom(
      'make' as const,
      'make' as const,
      'status' as const,
      'touch' as const,
      'rename' as const,
      'remove' as const,
      'beat' as const,
      'beat' as const,
    ),
    value: fc.constantFrom(...STATUSES),
    after: fc.constantFrom(0, 7, 60, 400, 1_500),
  }),
  { minLength: 5, maxLength: 40 },
);

const conditions: fc.Arbitrary<Condition> = fc.constantFrom<Condition[]>(
  ...(
    [
      ['agent', 'status', 'equals', 'error'],
      ['agent', 'status', 'equals', 'offline'],
      ['agent', 'status', 'not_equals', 'idle'],
      ['agent', 'role', 'equals', 'busy'],
      ['agent', 'role', 'contains', 'ID'],
      ['agent', 'last_seen', 'age_minutes_above', '5'],
      ['agent', 'created_at', 'age_minutes_above', '50'],
      ['agent', 'status=idle', 'count_above', '1'],
      ['agent', 'role=busy', 'count_below', '1'],
      ['agent', 'last_seen', 'count_above', '0'],
      ['task', 'status', 'equals', 'busy'],
      ['task', 'status=idle', 'count_below', '2'],
      ['task', 'updated_at', 'age_minutes_above', '20'],
      ['session', 'model', 'equals', 'error'],
      ['session', 'model=idle', 'count_above', '0'],
      ['session', 'input_tokens', 'greater_than', '4'],
      ['session', 'updated_at', 'age_minutes_above', '3'],
      ['session', 'status', 'equals', 'idle'],
      ['activity', 'type', 'equals', 'agent_status_change'],
      ['activity', 'type=agent_heartbeat', 'count_above', '1'],
      ['activity', 'created_at', 'age_minutes_above', '10'],
      ['activity', 'actor', 'not_equals', 'admin'],
    ] as const
  ).map(([entity_type, condition_field, condition_operator, condition_value]) => ({
    ...{ entity_type, condition_field, condition_operator, condition_value },
  })),
);

const tried = async (...asked: Parameters<typeof backtest>) => (await backtest(...asked)).backtest;

describe('queries: alert rule backtests', function () {
  this.timeout(120_000);
  let stored = 0;
  const history = new History(1_700_000_000);
  const models = readModels(PROJECTIONS);

  /** The log, as the backtest reads it. */
  async function* inBatches(events: readonly DomainEvent[]) {
    for (let at = 0; at < events.length; at += 7) yield events.slice(at, at + 7);
  }
  const store = {
    log: {
      readAll: ({ direction = 'forwards', from }: { direction?: string; from?: number } = {}) =>
        direction === 'forwards'
          ? inBatches(history.events.filter(({ position }) => position > (from ?? 0)))
          : inBatches([...history.events].reverse()),
      readStream: (stream: string, { from = 1e9, limit = 1e9 }: { from?: number; limit?: number } = {}) =>
        inBatches(
          history.events
            .filter((event) => event.stream === stream && event.revision <= from)
            .reverse()
            .slice(0, limit),
        ),
    },
    decode: (event: DomainEvent) => event,
  } as unknown as BacktestParts['store'];

  async function save(): Promise<void> {
    await models.tell(...history.told.slice(stored));
    stored = history.told.length;
  }

  const parts = (bounds: Partial<typeof BACKTEST_BOUNDS> = {}): BacktestParts => ({
    ...{ reads: models.reads, store, now: () => history.clock * 1_000, everySeconds: MINUTE },
    bounds: { ...BACKTEST_BOUNDS, ...bounds },
  });

  let workspace = 1;
  it('trigger like a plain evaluation every minute, for a random history', async () => {
    history.add(1, 'agent-1-1', registeredAgent({ agent_id: 1, name: 'old' }));
    history.clock += 20 * HOUR;
    let triggered = 0;
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(
        steps,
        steps,
        fc.constantFrom(0, HOUR),
        fc.array(conditions, { minLength: 6, maxLength: 6 }),
        fc.constantFrom(1, 2),
        fc.constantFrom(1, 5, 60),
        fc.constantFrom('rule' as const, 'record' as const),
        async (before, inside, gap, some, hours, cooldown_minutes, per) => {
          workspace++;
          for (const step of before) history.take(workspace, step);
          history.clock += gap;
          for (const step of inside) history.take(workspace, step);
          history.clock += 61;
          await save();
          const own = history.events.filter(({ meta }) => meta.workspace === workspace);
          for (const condition of some) {
            const cooldown_per = condition.condition_operator.startsWith('count_') ? 'rule' : per;
            const rule = { ...condition, cooldown_minutes, cooldown_per };
            const found = await tried(parts(), workspace, rule, hours, true);
            const since = history.clock - hours * HOUR;
            expect(found).to.deep.include({ complete: true, hours, since, until: history.clock });
            const first = Math.ceil(since / MINUTE) * MINUTE;
            const expected = triggersOf(own, rule, {
              first,
              last: history.clock,
              every: MINUTE,
            });
            expect(found.triggers, JSON.stringify(rule)).to.deep.equal(expected.slice(0, 100));
            expect(found.triggered).to.equal(expected.length);
            checkAlerts(found, new EvidenceReader(own, workspace));
            triggered += expected.length;
            compared++;
          }
        },
      ),
      { numRuns: runs(15, 40) },
    );
    expect(triggered, 'triggers that were compared').to.be.above(compared);
  });

  const agent = (id: number, status: string) =>
    registeredAgent({ agent_id: id, name: `agent-${id}`, status: status as 'idle' });
  const isError: Condition & Cooldown = {
    entity_type: 'agent',
    condition_field: 'status',
    condition_operator: 'equals',
    condition_value: 'error',
    cooldown_minutes: 10,
    cooldown_per: 'rule',
  };

  it('are cut at the maximum number of events, and the response reports this', async () => {
    workspace++;
    history.add(workspace, `agent-${workspace}-1`, agent(workspace * 100, 'error'));
    history.clock += 6 * HOUR;
    for (let n = 0; n < 50; n++) {
      history.clock += 60;
      history.add(
        workspace,
        `agent-${workspace}-2`,
        n === 0 ? agent(workspace * 100 + 1, 'idle') : (agentDraft(workspace * 100 + 1, 'touch', 'x', '') as Draft),
      );
    }
    await save();
    const found = await tried(parts({ events: 20 }), workspace, isError, 24, true);
    expect(found.complete).to.equal(false);
    expect(found.message).to.match(/only the time after `since` was, at most 20 events/);
    expect(found.until - found.since).to.be.within(18 * 60, 20 * 60);
    // The agent that has not changed is still seen.
    expect(found.triggered).to.equal(2);
    checkAlerts(found, new EvidenceReader(history.events, workspace));
  });

  it('omit and count records whose history is too long to restore their state', async () => {
    workspace++;
    const id = workspace * 100;
    const stream = `agent-${workspace}-1`;
    history.add(workspace, stream, agent(id, 'error'));
    const rename = (role: string) => history.add(workspace, stream, agentDraft(id, 'rename', role, '') as Draft);
    for (let n = 0; n < 60; n++) rename(`r${n}`);
    history.clock += 2 * HOUR;
    rename('last');
    history.clock += 30 * MINUTE;
    await save();
    const all = await tried(parts(), workspace, isError, 1);
    expect(all).to.deep.include({ complete: true, triggered: 6 });
    const some = await tried(parts({ earlier: 30 }), workspace, isError, 1, true);
    expect(some).to.deep.include({ complete: false, triggered: 0 });
    expect(some.message).to.match(/^1 records are left out/);
    expect(some.evidence, 'not to be had from the log alone').to.have.all.keys('evaluated');
  });

  it('evaluate no rule before the first event of the log', async () => {
    const young = new History(history.clock);
    young.add(1, 'agent-1-1', agent(1, 'error'));
    young.clock += 600;
    const log = {
      readAll: ({ from }: { from?: number } = {}) =>
        inBatches(young.events.filter(({ position }) => position > (from ?? 0))),
    };
    const only = { ...parts(), store: { ...store, log: log as never }, now: () => young.clock * 1_000 };
    const found = await tried(only, 9_999, isError, 24);
    expect(found).to.deep.include({ complete: true, since: young.clock - 600, triggered: 0 });
    expect(found.evaluated).to.be.within(10, 11);
  });

  it('run one at a time, and are rejected while five are waiting', async () => {
    let running = 0;
    const log = {
      ...parts().store.log,
      async *readAll() {
        expect(++running).to.equal(1);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
        yield* [];
      },
    };
    const backtests = createBacktests({ ...parts(), store: { ...parts().store, log } as never });
    const run = () =>
      backtests.run(1, isError, 1).then(
        () => 200,
        (error) => error.status,
      );
    const all = await Promise.all(Array.from({ length: 7 }, run));
    expect(all).to.deep.equal([200, 200, 200, 200, 200, 503, 503]);
    expect(await run(), 'afterwards').to.equal(200);
  });
});
