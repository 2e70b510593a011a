/** Diagnostics of an agent at windows anywhere, compared with going through all events one by one. */
import { expect } from 'chai';
import fc from 'fast-check';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { diagnosticsProjection } from '../../../projections/agents/diagnostics.ts';
import { leasesProjection } from '../../../projections/agents/leases.ts';
import { activitiesProjection } from '../../../projections/monitoring/activities.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { tokensProjection } from '../../../projections/tokens/reports.ts';
import { diagnosticsOf } from '../../../queries/agents/diagnostics.ts';
import {
  DIAGNOSTICS_SECTIONS,
  type DiagnosticsSection,
  diagnosticsResponse,
} from '../../../shared/contract/agents/diagnostics.ts';
import { windowOf } from '../../../shared/contract/agents/scope.ts';
import { agentDeleted, agentDetailsChanged, agentStatusChanged } from '../../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived } from '../../../shared/events/agents/heartbeat.ts';
import { tokensReported } from '../../../shared/events/tokens/reports.ts';
import { allTasks } from '../../../shared/identity.ts';
import { DAY, HOUR } from '../../../shared/time.ts';
import { EvidenceReader } from '../../support/evidence.ts';
import { checkDiagnostics } from '../../support/evidence-checks.ts';
import { sample } from '../../support/kit.ts';
import { seeded } from '../../support/random.ts';
import { agentRegisteredAs, readModels, type Told } from '../../support/rows.ts';
import { runs } from '../../support/runs.ts';
import { created, requeued, updated } from '../../support/tasks.ts';
import { tokenReport } from '../../support/tokens.ts';

/** Unix seconds: the beginning of an hour. */
const FIRST = Date.UTC(2026, 0, 1) / 1_000;
const LAST = FIRST + 70 * DAY;
/** Bob becomes Robert; then another agent is Bob, as an earlier one was. */
// At the beginning of an hour, which is counted as a whole elsewhere.
const REGISTERED = FIRST + 5 * DAY + 2 * HOUR;
const RENAMED = FIRST + 40 * DAY + 2_345;

const { below, pick } = seeded(11);

type Kind = 'beat' | 'error' | 'completed' | 'stalled' | 'tokens';
interface Case {
  readonly kind: Kind;
  readonly name: string;
  readonly at: number;
  readonly tokens: number;
}

const edges = [REGISTERED, RENAMED, FIRST + 10 * DAY, FIRST + 60 * DAY, LAST].flatMap((at) => [at - 1, at, at + 1]);
const cases: Case[] = Array.from({ length: 900 }, (_, n) => ({
  kind: pick<Kind>(['beat', 'beat', 'error', 'completed', 'stalled', 'tokens']),
  name: pick(['bob', 'robert', 'eve']),
  at: n < 3 * edges.length ? (edges[n % edges.length] as number) : FIRST + below(70 * DAY),
  tokens: below(1_000),
})).sort((a, b) => a.at - b.at);

const ID = 1;
const told = ({ kind, name, at, tokens }: Case): Told => {
  const about = { agent_id: 5, name };
  const meta = { at: at * 1_000 + below(1_000) };
  switch (kind) {
    case 'beat':
      return [sample(agentHeartbeatReceived, { ...about, last_activity: 'Heartbeat' }), meta];
    case 'error':
      return [
        sample(agentStatusChanged, {
          ...{ ...about, from: 'idle', to: 'error', cause: 'update', last_activity: 'no network', seen: true },
        }),
        meta,
      ];
    case 'completed':
      return [updated({ status: 'done' }, { assigned_to: name }), meta];
    case 'stalled':
      return [{ ...requeued(), data: { ...requeued().data, agent: name } }, meta];
    case 'tokens': {
      const owner = { agent_id: name === 'eve' ? 2 : ID, agent_name: name, session_id: `${name}:cli` };
      const used = { model: pick(['m', 'n']), input_tokens: tokens, output_tokens: 1 };
      const report = tokenReport(`r${at}-${tokens}-${name}`, { ...owner, ...used });
      return [tokensReported.draft({ page: null, reports: [report] }), meta];
    }
  }
};

/** What happened in the second in which he got a name comes before that in the log, so another agent did it. */
const isBobs = ({ name, at }: Case): boolean =>
  name === 'robert' ? at > RENAMED : name === 'bob' && at > REGISTERED && at <= RENAMED;
const within = (since: number, until = Number.POSITIVE_INFINITY) =>
  cases.filter((one) => one.at >= since && one.at < until);
const isFailure = ({ kind }: Case) => kind === 'error' || kind === 'stalled';
const isActivity = ({ kind }: Case) => kind === 'beat' || kind === 'error';
const tally = (names: readonly string[]) =>
  [...new Set(names)]
    .map((type) => ({ type, count: names.filter((name) => name === type).length }))
    .sort((a, b) => b.count - a.count || (a.type < b.type ? -1 : 1));

describe('agent diagnostics', () => {
  const agent = { id: ID, name: 'robert', role: 'coder', status: 'idle' };
  const ask = (
    hours: number,
    now: number,
    sections: readonly DiagnosticsSection[] = DIAGNOSTICS_SECTIONS,
    of: typeof agent = agent,
    most?: number,
  ) => diagnosticsOf(models.reads, allTasks(1), of, windowOf(String(hours), now * 1_000), new Set(sections), most);

  const models = readModels([
    leasesProjection,
    agentsProjection,
    activitiesProjection,
    tasksProjection,
    tokensProjection,
    diagnosticsProjection,
  ]);
  before(async () => {
    const happened: [number, Told][] = cases.map((one) => [one.at, told(one)]);
    const changes: [number, Told][] = [
      [FIRST, [agentRegisteredAs(9, 'bob'), { at: FIRST * 1_000 }]],
      [
        REGISTERED - 5,
        [
          agentDeleted.draft({ agent_id: 9, name: 'bob', role: 'coder', remove_workspace: false }),
          { at: (REGISTERED - 5) * 1_000 },
        ],
      ],
      [REGISTERED, [agentRegisteredAs(ID, 'bob'), { at: REGISTERED * 1_000 }]],
      [
        RENAMED,
        [
          sample(agentDetailsChanged, { agent_id: ID, name: 'bob', changes: { name: 'robert' }, via: 'id' }),
          { at: RENAMED * 1_000 },
        ],
      ],
      [RENAMED + 5, [agentRegisteredAs(3, 'bob'), { at: (RENAMED + 5) * 1_000 }]],
    ];
    await models.tell(...[...happened, ...changes].sort(([a], [b]) => a - b).map(([, one]) => one));
    // What other workspaces do is no business of this one.
    await models.tell(
      ...cases.slice(0, 50).map((one): Told => {
        const [draft, meta] = told(one) as [never, object];
        return [draft, { ...meta, workspace: 2 }];
      }),
    );
  });

  it('return the same as counting one by one, for any window', async () => {
    const now = fc.oneof(
      fc.integer({ min: FIRST, max: LAST + 60 * DAY }),
      fc.nat(71 * 24).map((hour) => FIRST + hour * HOUR),
      fc.constantFrom(...edges),
    );
    const hours = fc.oneof(fc.integer({ min: 1, max: 720 }), fc.constantFrom(1, 24, 720));
    await fc.assert(
      fc.asyncProperty(hours, now, async (length, until) => {
        const since = until - length * HOUR;
        const before = since - length * HOUR;
        const found = await ask(length, until);
        expect(diagnosticsResponse.parse(found)).to.deep.equal(found);
        const own = within(since).filter(isBobs);
        const activities = own.filter(isActivity);
        const failures = own.filter(isFailure);
        const completed = own.filter(({ kind }) => kind === 'completed');
        const earlier = within(before, since).filter(isBobs);
        expect(found.timeframe).to.deep.equal({ hours: length, since, until });
        expect(found.summary).to.deep.include({
          tasks_completed: completed.length,
          activity_count: activities.length,
          error_count: failures.length,
        });
        expect(found.errors?.total).to.equal(failures.length);
        expect(found.errors?.by_type).to.deep.equal(
          tally(failures.map(({ kind }) => (kind === 'error' ? 'agent_error' : 'task_stalled'))),
        );
        expect(found.errors?.recent.map((one) => one.created_at)).to.deep.equal(
          failures
            .map(({ at }) => at)
            .reverse()
            .slice(0, 20),
        );
        expect(found.activity?.by_type).to.deep.equal(
          tally(activities.map(({ kind }) => (kind === 'beat' ? 'agent_heartbeat' : 'agent_status_change'))),
        );
        const starts = activities.map(({ at }) => at - (at % HOUR));
        expect(found.activity?.timeline).to.deep.equal(
          [...new Set(starts)].map((timestamp) => ({
            timestamp,
            hour: new Date(timestamp * 1_000).toISOString(),
            count: starts.filter((one) => one === timestamp).length,
          })),
        );
        expect(found.trends?.current_period).to.deep.equal({
          since,
          until,
          activities: activities.length,
          errors: failures.length,
          tasks_completed: completed.length,
        });
        expect(found.trends?.previous_period).to.deep.equal({
          since: before,
          until: since,
          activities: earlier.filter(isActivity).length,
          errors: earlier.filter(isFailure).length,
          tasks_completed: earlier.filter(({ kind }) => kind === 'completed').length,
        });
        // Tokens are of the agent's id, whatever it was called.
        const used = within(since).filter(({ kind, name }) => kind === 'tokens' && name !== 'eve');
        expect(found.tokens?.total).to.deep.equal({
          input_tokens: used.reduce((sum, { tokens }) => sum + tokens, 0),
          output_tokens: used.length,
          requests: used.length,
        });
      }),
      { numRuns: runs(8, 60) },
    );
  });

  it('contain only the requested sections, each as in the whole report', async () => {
    const whole = await ask(72, LAST);
    for (const section of DIAGNOSTICS_SECTIONS) {
      const one = await ask(72, LAST, [section]);
      expect(one).to.deep.equal({ agent: whole.agent, timeframe: whole.timeframe, [section]: whole[section] });
    }
  });

  it('sum the whole time of each status, however many changes there are, in the order of the log', async () => {
    const flip = { id: 6, name: 'flip', role: 'coder', status: 'idle' };
    const start = LAST - 20 * DAY;
    const changes: { readonly at: number; readonly to: string }[] = [];
    for (let n = 0; n < 2_500; n++) {
      // Several changes within one second are common.
      const at = (changes.at(-1)?.at ?? start) + below(3) * below(600);
      changes.push({ at, to: pick(['idle', 'busy', 'offline']) });
    }
    await models.tell(
      [agentRegisteredAs(6, 'flip'), { at: start * 1_000 }],
      ...changes.map(({ at, to }): Told => {
        const about = { agent_id: 6, name: 'flip', from: 'x', to, cause: 'update' as const, last_activity: null };
        return [sample(agentStatusChanged, about), { at: at * 1_000 }];
      }),
    );
    const first = (await ask(720, LAST, ['status'], flip)).status;
    expect(first?.since, 'the beginning of the agent').to.equal(start);
    for (const hours of [1, 24, 100, 400, 720]) {
      const since = LAST - hours * HOUR;
      const seconds: Record<string, number> = {};
      const all = [{ at: start, to: 'idle' }, ...changes];
      for (const [n, { at, to }] of all.entries()) {
        const end = Math.min(all[n + 1]?.at ?? LAST, LAST);
        const length = Math.max(0, end - Math.max(at, since));
        if (length > 0) seconds[to] = (seconds[to] ?? 0) + length;
      }
      const { status } = await ask(hours, LAST, ['status'], flip);
      const known = Object.fromEntries(Object.entries(status?.seconds_by_status ?? {}).filter(([, n]) => n > 0));
      expect(known, `${hours} h`).to.deep.equal(seconds);
      const sum = Object.values(known).reduce((all, one) => all + one, 0);
      expect(sum).to.equal(LAST - (status?.since ?? 0));
      const spans = status?.spans ?? [];
      expect(spans.at(-1)?.until).to.equal(LAST);
      for (const [n, span] of spans.entries()) {
        expect(span.since).to.be.at.most(span.until);
        if (n < spans.length - 1) expect(span.since).to.be.lessThan(span.until);
        if (n > 0)
          expect([span.since, span.status]).to.satisfy(
            ([at, is]: [number, string]) => at === spans[n - 1]?.until && is !== spans[n - 1]?.status,
          );
      }
    }
  });

  it('show evidence for each number, for any window and any amount', async () => {
    const hours = fc.oneof(fc.integer({ min: 1, max: 720 }), fc.constantFrom(1, 24, 720));
    const now = fc.oneof(fc.integer({ min: FIRST, max: LAST + DAY }), fc.constantFrom(...edges));
    const ofWindows = ['errors', 'activity', 'trends', 'tokens'] as const;
    const reader = new EvidenceReader(models.events(), 1);
    await fc.assert(
      fc.asyncProperty(hours, now, fc.constantFrom(1, 10, 1_000), async (length, until, most) => {
        const { evidence, ...found } = await ask(length, until, ofWindows, agent, most);
        expect(found, 'the same with and without evidence').to.deep.equal(await ask(length, until, ofWindows));
        checkDiagnostics({ ...found, evidence }, reader);
        for (const one of Object.values(evidence ?? {})) expect(one.positions?.length ?? 0).to.be.at.most(most);
      }),
      { numRuns: runs(4, 15) },
    );
  });

  it('count the agent’s current tasks', async () => {
    const zoe = { ...agent, id: 4, name: 'zoe' };
    const task = (n: number, fields: object): Told => {
      const draft = created({ assigned_to: 'zoe', ...fields });
      return [{ ...draft, data: { ...draft.data, task_id: n } }, { at: (LAST + n) * 1_000 }];
    };
    await models.tell(
      [agentRegisteredAs(4, 'zoe'), { at: LAST * 1_000 }],
      ...Array.from({ length: 12 }, (_, n) => task(100 + n, { status: 'done', priority: 'high', title: `T${n}` })),
      task(200, { status: 'in_progress' }),
      task(201, { status: 'done', assigned_to: 'eve' }),
    );
    const { tasks, summary } = await ask(1, LAST + 300, ['tasks', 'summary'], zoe);
    expect(summary).to.deep.include({ tasks_total: 13, tasks_completed: 12 });
    expect(tasks?.by_status).to.deep.equal({ done: 12, in_progress: 1 });
    expect(tasks?.by_priority).to.deep.equal({ high: 12, medium: 1 });
    expect(tasks?.throughput_per_day).to.equal(12);
    expect(tasks?.recent_completed.map(({ title }) => title)).to.deep.equal(
      Array.from({ length: 10 }, (_, n) => `T${11 - n}`),
    );
    const reader = new EvidenceReader(models.events(), 1);
    for (const most of [1, 100]) checkDiagnostics(await ask(1, LAST + 300, DIAGNOSTICS_SECTIONS, zoe, most), reader);
    const later = await ask(1, LAST + 300 + HOUR, ['tasks'], zoe);
    expect(later.tasks?.recent_completed).to.deep.equal([]);
    expect(later.tasks?.by_status).to.deep.equal({ done: 12, in_progress: 1 });
  });
});
