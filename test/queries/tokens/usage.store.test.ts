/** Sums of tokens in windows of every length, compared with adding up the reports one by one. */
import { expect } from 'chai';
import fc from 'fast-check';
import { sql } from 'kysely';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { notificationsProjection } from '../../../projections/monitoring/notifications.ts';
import { projectsProjection } from '../../../projections/projects/projects.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { tokenPricesProjection } from '../../../projections/tokens/prices.ts';
import { tokensProjection } from '../../../projections/tokens/reports.ts';
import { type Reads, versionsOf } from '../../../queries/reads.ts';
import { agentCosts, tokensByAgent } from '../../../queries/tokens/agent-costs.ts';
import { allTokens, evidentTokens, listTokens, tokenDirectory } from '../../../queries/tokens/reports.ts';
import { tokenStats, tokenTrends } from '../../../queries/tokens/stats.ts';
import { taskCosts } from '../../../queries/tokens/task-costs.ts';
import type { Derivation } from '../../../shared/contract/evidence.ts';
import { allInput } from '../../../shared/contract/tokens/costs.ts';
import type { TokenRecord } from '../../../shared/contract/tokens/reports.ts';
import { TIMEFRAMES } from '../../../shared/contract/tokens/usage.ts';
import { agentDeleted, agentDetailsChanged } from '../../../shared/events/agents/agents.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import { tokenPriceSet } from '../../../shared/events/tokens/prices.ts';
import {
  type TokenReport,
  tokenPageFilled,
  tokenReportsPurged,
  tokensReported,
} from '../../../shared/events/tokens/reports.ts';
import { allTasks, type TaskView } from '../../../shared/identity.ts';
import { DAY_MS, HOUR_MS } from '../../../shared/time-buckets.ts';
import { EvidenceReader } from '../../support/evidence.ts';
import { checkTokens } from '../../support/evidence-checks.ts';
import { sample } from '../../support/kit.ts';
import { seeded } from '../../support/random.ts';
import { agentRegisteredAs, readModels, type Told } from '../../support/rows.ts';
import { runs } from '../../support/runs.ts';
import { createdAs } from '../../support/tasks.ts';
import { farFromUtc } from '../../support/time-zone.ts';
import { tokenReport, usedBy } from '../../support/tokens.ts';

const NOW = Date.UTC(2026, 2, 3, 10, 20, 30, 400);
/** Callers that see all tasks, those of one agent, and none. */
const VIEWS: readonly TaskView[] = [null, { name: 'bob', id: 1 }, { name: 'nobody', id: null }].map((agent) => ({
  workspace: 1,
  agent,
}));
const REPORTS = 600;
const M_PRICE = { input: 1, output: 2, cache_read: 3, cache_write: 4 };
const Z_PRICE = { input: 9, output: 9, cache_read: 9, cache_write: 9 };

const { below, pick } = seeded(7);

interface Case extends TokenReport {
  readonly at: number;
}

/** Reports of a third of all moments are late, by up to 90 days, or ahead of the log. */
const isLate = (at: number) => at % 3 === 0;
const MAX_DELAY = 90 * DAY_MS;
const MAX_AHEAD = 5 * 60_000;

/** On the edges of hours, days, months and timeframes, just beside them, and anywhere. */
const moments = [
  ...[0, HOUR_MS, DAY_MS, 7 * DAY_MS, 30 * DAY_MS, 365 * DAY_MS].map((span) => NOW - span),
  Date.UTC(2026, 2, 3, 10),
  Date.UTC(2026, 2, 3),
  Date.UTC(2026, 2, 1),
  Date.UTC(2025, 11, 1),
  // Where time lines begin.
  Date.UTC(2026, 2, 3) - 365 * DAY_MS,
].flatMap((at) => [at - 1, at, at + 1]);
const spans = [HOUR_MS, DAY_MS, 30 * DAY_MS, 500 * DAY_MS];

const cases: Case[] = Array.from({ length: REPORTS }, (_, n) => {
  const whose = pick([
    { agent_id: 1, agent_name: 'ada' },
    { agent_id: 2, agent_name: 'bob' },
    { agent_id: null, agent_name: 'ada' },
    { agent_id: null, agent_name: 'nobody' },
  ]);
  const at = n < moments.length ? (moments[n] as number) : NOW - below(pick(spans));
  return {
    ...tokenReport(`r${n}`, whose),
    at,
    used_at: isLate(at) ? at : null,
    model: pick(['m', 'n']),
    session_id: `${whose.agent_name}:${pick(['cli', 'web'])}`,
    input_tokens: below(1_000),
    output_tokens: below(1_000),
    cache_read_tokens: below(1_000),
    cache_write_tokens: below(1_000),
    task_id: pick([null, 1, 2, 3]),
    cost: below(1_000_000) / 1e9,
    price: pick(['own', 'default'] as const),
  };
}).sort((a, b) => a.at - b.at);

const sum = (reports: readonly Case[]) => {
  const tokens = reports.reduce((total, one) => total + allInput(one) + one.output_tokens, 0);
  const costOf = (some: readonly Case[]) => some.reduce((total, one) => total + Math.round(one.cost * 1e9), 0) / 1e9;
  const totalCost = costOf(reports);
  const n = reports.length;
  return {
    totalTokens: tokens,
    totalCost,
    estimatedCost: costOf(reports.filter(({ price }) => price === 'default')),
    requestCount: n,
    avgTokensPerRequest: n && Math.round(tokens / n),
    avgCostPerRequest: n && totalCost / n,
  };
};
const sumBy = (reports: readonly Case[], keyOf: (one: Case) => string) =>
  Object.fromEntries(
    [...new Set(reports.map(keyOf))].map((key) => [key, sum(reports.filter((one) => keyOf(one) === key))]),
  );

/** Ada is called Ada now; Bob is gone. */
const nameOf = ({ agent_id: agentId, agent_name: agentName }: Case) => (agentId === 1 ? 'Ada' : agentName);
const dateOf = ({ at }: Case) => new Date(at).toISOString().slice(0, 10);
const daysOf = (reports: readonly Case[]) =>
  Object.entries(sumBy(reports, dateOf))
    .map(([date, { totalCost, totalTokens }]) => ({ date, cost: totalCost, tokens: totalTokens }))
    .sort((a, b) => (a.date < b.date ? -1 : 1));

describe('token totals', () => {
  farFromUtc();

  const models = readModels([
    agentsProjection,
    tasksProjection,
    projectsProjection,
    tokensProjection,
    tokenPricesProjection,
    notificationsProjection,
  ]);
  before(async () => {
    const batches: (readonly [draft: EventDraft, meta: { readonly at: number }])[] = [];
    for (let n = 0; n < REPORTS; ) {
      // Those of one moment are in one event.
      const { at } = cases[n] as Case;
      const batch = cases.filter((one) => one.at === at);
      n += batch.length;
      const reports = batch.map(({ at: _, ...report }) => report);
      const delay = below(4) === 0 ? -below(MAX_AHEAD) : below(MAX_DELAY);
      const recorded = isLate(at) ? Math.min(at + delay, NOW) : at;
      batches.push([tokensReported.draft({ page: null, reports }), { at: recorded }]);
    }
    const task = (taskId: number) => createdAs(taskId, { title: `T${taskId}` });
    const about = { agent_id: 1, name: 'ada' };
    await models.tell(
      agentRegisteredAs(1, 'ada'),
      agentRegisteredAs(2, 'bob'),
      task(1),
      task(2),
      ...batches.sort(([, one], [, other]) => one.at - other.at),
      [tokensReported.draft({ page: 1, reports: [{ ...(cases[0] as Case), id: 'other' }] }), { at: NOW, workspace: 2 }],
      [tokenPageFilled.draft({ page: 1 }), { workspace: 2 }],
      // Of another workspace, with the names and ids that are looked up in this one.
      [agentRegisteredAs(40, 'bob'), { workspace: 2 }],
      [task(3), { workspace: 2 }],
      [tokenPriceSet.draft({ model: 'z', price: Z_PRICE, before: null }), { workspace: 2 }],
      tokenPriceSet.draft({ model: 'm', price: M_PRICE, before: null }),
      sample(agentDetailsChanged, { ...about, changes: { name: 'Ada' }, via: 'id' }),
      agentDeleted.draft({ agent_id: 2, name: 'bob', role: 'coder', remove_workspace: false }),
    );
  });

  const TIMELINES = 365 * DAY_MS;
  const isExisting = ({ task_id }: Case) => task_id === 1 || task_id === 2;

  /** Compares the sums of a window that ends at `now` with the reports. */
  async function check(timeframe: string, now: number): Promise<void> {
    const all = cases.filter(({ at }) => at >= now - (TIMEFRAMES[timeframe] ?? now));
    const timelines = all.filter(({ at }) => at >= now - (now % DAY_MS) - TIMELINES);
    expect(await tokenStats(models.reads, 1, timeframe, now)).to.deep.equal({
      summary: sum(all),
      models: sumBy(all, ({ model }) => model),
      sessions: sumBy(all, ({ session_id }) => session_id),
      agents: sumBy(all, nameOf),
      timeframe,
      recordCount: all.length,
    });

    const costs = await agentCosts(models.reads, 1, timeframe, now);
    expect(costs.recordCount).to.equal(all.length);
    const expected = Object.entries(sumBy(all, nameOf)).map(([name, stats]) => {
      const own = all.filter((one) => nameOf(one) === name);
      const sessions = [...new Set(own.map(({ session_id }) => session_id))].sort();
      const timeline = daysOf(timelines.filter((one) => nameOf(one) === name));
      return [name, { stats, models: sumBy(own, ({ model }) => model), sessions, timeline }];
    });
    expect(costs.agents).to.deep.equal(Object.fromEntries(expected));

    const { usage, total } = await listTokens(models.reads, 1, timeframe, now);
    expect(total).to.equal(all.length);
    const newestFirst = all.map(({ at }) => at).reverse();
    expect(usage.map(({ timestamp }) => timestamp)).to.deep.equal(newestFirst.slice(0, 100));

    const day = all.filter(({ at }) => at >= now - DAY_MS);
    const hours = sumBy(day, ({ at }) => new Date(at - (at % HOUR_MS)).toISOString());
    const { trends } = await tokenTrends(models.reads, 1, timeframe, now);
    expect(trends).to.deep.equal(
      Object.entries(hours)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([timestamp, { totalTokens: tokens, totalCost: cost, requestCount: requests }]) => ({
          ...{ timestamp, tokens, cost, requests },
        })),
    );
    await checkTasks(timeframe, now, all, timelines.filter(isExisting));
  }

  async function checkTasks(timeframe: string, now: number, all: readonly Case[], timelines: readonly Case[]) {
    const existing = all.filter(isExisting);
    const costs = await taskCosts(models.reads, allTasks(1), timeframe, now);
    expect(costs.summary).to.deep.equal(sum(existing));
    expect(costs.unattributed).to.deep.equal(sum(all.filter(({ task_id }) => task_id === null)));
    expect(costs.recordCount).to.equal(all.length);
    expect(costs.attributedRecordCount).to.equal(all.filter(({ task_id }) => task_id !== null).length);
    const idsOf = (some: readonly Case[]) => [...new Set(some.map(({ task_id }) => task_id as number))].sort();
    const shared = (some: readonly Case[]) => {
      const taskIds = idsOf(some);
      return { stats: sum(some), taskCount: taskIds.length, taskIds };
    };
    expect(costs.tasks.map(({ taskId }) => taskId)).to.have.members(idsOf(existing));
    const dearest = costs.tasks.map(({ stats }) => stats.totalCost);
    expect(dearest).to.deep.equal([...dearest].sort((a, b) => b - a));
    for (const task of costs.tasks) {
      const own = existing.filter(({ task_id }) => task_id === task.taskId);
      expect(task).to.deep.include({
        title: `T${task.taskId}`,
        stats: sum(own),
        models: sumBy(own, ({ model }) => model),
        timeline: daysOf(timelines.filter(({ task_id }) => task_id === task.taskId)),
      });
    }
    const names = [...new Set(existing.map(nameOf))];
    const byName = names.map((name) => [name, shared(existing.filter((one) => nameOf(one) === name))]);
    expect(costs.agents).to.deep.equal(Object.fromEntries(byName));
    // The project of these tasks does not exist.
    expect(costs.projects).to.deep.equal(existing.length > 0 ? { unscoped: shared(existing) } : {});
  }

  async function checkByAgent(days: number, now: number): Promise<void> {
    const all = cases.filter(({ at }) => at >= Math.floor(now - days * DAY_MS));
    const { agents, summary } = await tokensByAgent(models.reads, 1, days, now);
    const { totalCost: total_cost, estimatedCost: estimated_cost, totalTokens: total_tokens } = sum(all);
    const names = Object.keys(sumBy(all, nameOf));
    expect(summary).to.deep.equal({ total_cost, estimated_cost, total_tokens, agent_count: names.length, days });
    expect(agents.map(({ agent }) => agent)).to.have.members(names);
    const tokens = agents.map((one) => one.total_tokens);
    expect(tokens).to.deep.equal([...tokens].sort((a, b) => b - a));
    for (const one of agents) {
      const own = all.filter((each) => nameOf(each) === one.agent);
      const stats = sum(own);
      expect(one).to.deep.include({
        agent_id: own[0]?.agent_id,
        total_tokens: stats.totalTokens,
        total_cost: stats.totalCost,
        estimated_cost: stats.estimatedCost,
        request_count: own.length,
        session_count: new Set(own.map(({ session_id }) => session_id)).size,
        last_active: new Date(Math.max(...own.map(({ at }) => at))).toISOString(),
      });
      const costs = Object.entries(sumBy(own, ({ model }) => model)).map(([model, { totalCost }]) => [
        model,
        totalCost,
      ]);
      expect(Object.fromEntries(one.models.map((each) => [each.model, each.cost]))).to.deep.equal(
        Object.fromEntries(costs),
      );
    }
  }

  for (const timeframe of [...Object.keys(TIMEFRAMES), 'all', 'fortnight'])
    it(`for the timeframe ${timeframe}`, async () => {
      await check(timeframe, NOW);
      const exported: TokenRecord[] = [];
      for await (const page of allTokens(models.reads, 1, timeframe, NOW)) exported.push(...page);
      const all = cases.filter(({ at }) => at >= NOW - (TIMEFRAMES[timeframe] ?? NOW));
      expect(exported.map(({ timestamp }) => timestamp)).to.deep.equal(all.map(({ at }) => at).reverse());
      expect(new Set(exported.map(({ id }) => id)).size).to.equal(all.length);
    });

  for (const days of [1, 1.5, 30, 365]) it(`by agent, for ${days} days`, () => checkByAgent(days, NOW));

  // The windows above begin on few edges; these begin anywhere, so that every mix of buckets and single reports occurs.
  it('for windows that end at any time', async () => {
    const later = fc.oneof(
      // Other processes may be ahead of this one: some reports are from after the end.
      fc.integer({ min: -2 * DAY_MS, max: 70 * DAY_MS }),
      // On edges of hours and days, and just beside them.
      fc
        .record({ hours: fc.integer({ min: -48, max: 70 * 24 }), beside: fc.integer({ min: -1, max: 1 }) })
        .map(({ hours, beside }) => hours * HOUR_MS - (NOW % HOUR_MS) + beside),
    );
    const timeframes = fc.constantFrom(...Object.keys(TIMEFRAMES));
    await fc.assert(
      fc.asyncProperty(later, timeframes, fc.constantFrom(1, 30, 90, 365), async (after, timeframe, days) => {
        await check(timeframe, NOW + after);
        await checkByAgent(days, NOW + after);
      }),
      { numRuns: runs(4, 30) },
    );
  });

  /** An export, whose numbers are how many reports there are in all. */
  async function checkExport(timeframe: string, at: number, limit: number, reader: EvidenceReader): Promise<void> {
    const { pages, evidence } = await evidentTokens(models.reads, 1, timeframe, at, limit);
    let count = 0;
    for await (const page of pages) count += page.length;
    const { summary } = await evidence([['summary', count, {}]]);
    expect(reader.count(summary as Derivation)).to.equal(count);
    // Cleanup has removed one meanwhile.
    expect(() => evidence([['summary', count - 1, {}]])).to.throw('reports were removed');
  }

  it('show evidence for each number, in windows that end at any time', async () => {
    const reader = new EvidenceReader(models.events(), 1);
    const now = fc.integer({ min: -2 * DAY_MS, max: 40 * DAY_MS }).map((later) => NOW + later);
    const most = fc.constantFrom(1, 100, 1_000);
    await fc.assert(
      fc.asyncProperty(
        now,
        fc.constantFrom('hour', 'day', 'week', 'month', 'all'),
        most,
        async (at, timeframe, limit) => {
          checkTokens(await listTokens(models.reads, 1, timeframe, at, limit), reader);
          checkTokens(await tokenStats(models.reads, 1, timeframe, at, limit), reader);
          checkTokens(await tokenTrends(models.reads, 1, timeframe, at, limit), reader);
          checkTokens(await tokensByAgent(models.reads, 1, 30, at, limit), reader);
          checkTokens(await agentCosts(models.reads, 1, timeframe, at, limit), reader);
          for (const view of VIEWS) checkTokens(await taskCosts(models.reads, view, timeframe, at, limit), reader);
          await checkExport(timeframe, at, limit, reader);
        },
      ),
      { numRuns: runs(3, 15) },
    );
  });

  it('list the reports behind each number if they are few enough', async () => {
    const asked = [models.reads, 1, 'all', NOW, 100_000] as const;
    const found = [await tokenStats(...asked), await agentCosts(...asked)];
    const costs = VIEWS.map((view) => taskCosts(models.reads, view, 'all', NOW, 100_000));
    for (const { evidence } of [...found, ...(await Promise.all(costs))]) {
      expect(evidence).not.to.equal(undefined);
      for (const [name, one] of Object.entries(evidence ?? {})) expect(one.positions, name).to.be.an('array');
    }
  });

  it('are zero without reports', async () => {
    const none = {
      totalTokens: 0,
      totalCost: 0,
      estimatedCost: 0,
      requestCount: 0,
      avgTokensPerRequest: 0,
      avgCostPerRequest: 0,
    };
    expect((await tokenStats(models.reads, 9, 'all', NOW)).summary).to.deep.equal(none);
    expect((await taskCosts(models.reads, allTasks(9), 'day', NOW)).unattributed).to.deep.equal(none);
    expect(await tokensByAgent(models.reads, 9, 30, NOW)).to.deep.equal({
      agents: [],
      summary: { total_cost: 0, estimated_cost: 0, total_tokens: 0, agent_count: 0, days: 30 },
    });
  });

  it('commands find reports, agents, tasks, prices and the open page in one query', async () => {
    const { lookUp } = tokenDirectory(models.reads);
    const found = await lookUp(1, {
      reportIds: ['r3', 'other'],
      agentNames: ['Ada', 'bob', 'ada'],
      taskIds: [1, 3],
    });
    const known = cases.find(({ id }) => id === 'r3');
    expect({ ...found, reports: [...found.reports.values()] }).to.deep.equal({
      page: 1,
      reports: [known],
      // The agent was called ada before.
      agents: new Map(['Ada', 'ada'].map((name) => [name, { id: 1, name: 'Ada' }])),
      tasks: new Set([1]),
      prices: [{ model: 'm', ...M_PRICE }],
    });
    expect((await lookUp(2, {})).page).to.equal(2);
    const there = await lookUp(2, { reportIds: ['r3', 'other'], agentNames: ['Ada', 'bob'], taskIds: [1, 3] });
    expect({ ...there, reports: [...there.reports.keys()] }).to.deep.equal({
      page: 2,
      reports: ['other'],
      agents: new Map([['bob', { id: 40, name: 'bob' }]]),
      tasks: new Set([3]),
      prices: [{ model: 'z', ...Z_PRICE }],
    });
  });

  it('agents of the same name are distinguished', async () => {
    const [one] = cases as [Case];
    await models.tell(
      agentRegisteredAs(3, 'bob'),
      ...[
        { agent_id: 3, agent_name: 'bob' },
        { agent_id: null, agent_name: 'bob' },
      ].map(
        (whose, n): Told => [
          tokensReported.draft({ page: null, reports: [{ ...one, id: `late-${n}`, used_at: null, ...whose }] }),
          { at: NOW },
        ],
      ),
    );
    const { agents } = await tokensByAgent(models.reads, 1, 365, NOW);
    const named = agents.filter(({ agent }) => agent.startsWith('bob'));
    expect(new Map(named.map(({ agent, agent_id }) => [agent, agent_id]))).to.deep.equal(
      new Map([
        ['bob', 3],
        ['bob (#2)', 2],
        ['bob (no agent)', null],
      ]),
    );
    const stats = await tokenStats(models.reads, 1, 'all', NOW);
    expect(stats.agents).to.include.all.keys('bob', 'bob (#2)', 'bob (no agent)');
  });
});

describe('token totals as of an earlier position', () => {
  farFromUtc();

  const models = readModels([
    agentsProjection,
    tasksProjection,
    projectsProjection,
    tokensProjection,
    tokenPricesProjection,
  ]);
  const frames = ['day', 'month', 'all'];
  const MOST = 50;
  /** Everything that is derived from sums, with its evidence. */
  const totals = async (reads: Reads, now: number) => ({
    stats: await Promise.all(frames.map((frame) => tokenStats(reads, 1, frame, now, MOST))),
    trends: await Promise.all(frames.map((frame) => tokenTrends(reads, 1, frame, now, MOST))),
    agents: await Promise.all(frames.map((frame) => agentCosts(reads, 1, frame, now, MOST))),
    tasks: await Promise.all(frames.map((frame) => taskCosts(reads, allTasks(1), frame, now, MOST))),
    byAgent: await Promise.all([1, 365].map((days) => tokensByAgent(reads, 1, days, now, MOST))),
  });

  it('are those that were current then, with late and with purged reports', async () => {
    const reported = cases.map(({ at, ...report }): { recorded: number; told: Told } => {
      const recorded = report.used_at === null ? at : Math.min(NOW, at + below(MAX_DELAY));
      return { recorded, told: [tokensReported.draft({ page: null, reports: [report] }), { at: recorded }] };
    });
    reported.sort((one, other) => one.recorded - other.recorded);
    await models.tell(
      agentRegisteredAs(1, 'ada'),
      agentRegisteredAs(2, 'bob'),
      createdAs(1, { title: 'T1' }),
      createdAs(2, { title: 'T2' }),
    );
    const oldest = [...cases];
    const then: { position: number; now: number; totals: unknown }[] = [];
    for (let n = 0; n < reported.length; ) {
      const piece = reported.slice(n, n + 1 + below(runs(300, 150)));
      n += piece.length;
      const now = piece.at(-1)?.recorded as number;
      await models.tell(...piece.map(({ told }) => told));
      if (then.length % 3 === 2) {
        const told = new Set(reported.slice(0, n).map((one) => idOf(one.told)));
        const gone = oldest.filter(({ id }) => told.has(id)).slice(0, 20);
        for (const one of gone) oldest.splice(oldest.indexOf(one), 1);
        const used = gone.map(({ at, ...one }) => usedBy(at, one));
        await models.tell([tokenReportsPurged.draft({ ids: gone.map(({ id }) => id), used }), { at: now }]);
      }
      then.push({ position: models.events().length, now, totals: await totals(models.reads, now) });
    }
    for (const { position, now, totals: current } of then) {
      const past = await totals(models.asOf(position), now);
      expect(withoutEnds(past), `as of ${position}`).to.deep.equal(withoutEnds(current));
      const reader = new EvidenceReader(models.events().slice(0, position), 1);
      for (const one of [past.stats, past.trends, past.agents, past.tasks, past.byAgent].flat())
        checkTokens(one, reader);
    }
  });

  it('keep no versions of open buckets', async () => {
    const { rows } = await sql<{ versions: number }>`
      SELECT count(*)::int AS versions FROM ${versionsOf(tokensProjection, 'usage')}`.execute(models.reads.db);
    // Each report changes 14 to 17 buckets; those of late and purged reports were closed.
    expect(rows[0]?.versions).to.be.within(REPORTS / 2, 3 * REPORTS);
  });
});

/** Without the ends of ranges of evidence: as of a position they may be earlier, with the same events before them. */
const withoutEnds = (totals: unknown): unknown =>
  JSON.parse(JSON.stringify(totals, (name, value) => (name === 'to' ? undefined : value)));

/** The id of the only report of an event. */
const idOf = (told: Told): string => {
  const [draft] = told as readonly [EventDraft, object];
  return (draft.data as { reports: readonly [TokenReport] }).reports[0].id;
};

describe('evidence of token totals', () => {
  const models = readModels([agentsProjection, tokensProjection]);

  it('omits removed reports, in a list and in a range', async () => {
    const told = cases.slice(-20).map(({ at, ...one }) => ({ at, one }));
    const gone = told.filter((_, n) => n % 3 === 1);
    const used = gone.map(({ at, one }) => usedBy(at, one));
    await models.tell(
      ...told.map(({ at, one }): Told => [tokensReported.draft({ page: null, reports: [one] }), { at }]),
      [tokenReportsPurged.draft({ ids: gone.map(({ one }) => one.id), used }), { at: NOW + HOUR_MS }],
    );
    const reader = new EvidenceReader(models.events(), 1);
    for (const limit of [1, 1_000]) {
      const stats = await tokenStats(models.reads, 1, 'all', NOW + HOUR_MS, limit);
      expect(stats.recordCount).to.equal(13);
      checkTokens(stats, reader);
    }
  });
});
