/** Attribution in windows that begin anywhere, compared with going through the events one by one. */
import { expect } from 'chai';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { agentAttributionProjection } from '../../../projections/agents/attribution.ts';
import { leasesProjection } from '../../../projections/agents/leases.ts';
import { activitiesProjection } from '../../../projections/monitoring/activities.ts';
import { auditProjection } from '../../../projections/monitoring/audit.ts';
import { taskCommentsProjection } from '../../../projections/tasks/comments.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { tokensProjection } from '../../../projections/tokens/reports.ts';
import { agentRecord } from '../../../queries/agents/agents.ts';
import { attributionOf } from '../../../queries/agents/attribution.ts';
import { evidenceOf, readCursor } from '../../../queries/agents/evidence.ts';
import type { AgentRecord } from '../../../shared/contract/agents/agents.ts';
import {
  ATTRIBUTION_SECTIONS,
  type AttributionResponse,
  attributionResponse,
} from '../../../shared/contract/agents/attribution.ts';
import { windowOf } from '../../../shared/contract/agents/scope.ts';
import type { Evidence } from '../../../shared/contract/evidence.ts';
import { agentDetailsChanged } from '../../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived } from '../../../shared/events/agents/heartbeat.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import { taskCommented } from '../../../shared/events/tasks/comments.ts';
import { taskCreated } from '../../../shared/events/tasks/tasks.ts';
import { type TokenReport, tokensReported } from '../../../shared/events/tokens/reports.ts';
import { allTasks } from '../../../shared/identity.ts';
import { DAY_MS, HOUR_MS } from '../../../shared/time-buckets.ts';
import { EvidenceReader } from '../../support/evidence.ts';
import { checkAttribution } from '../../support/evidence-checks.ts';
import { type Draft, sample } from '../../support/kit.ts';
import { seeded } from '../../support/random.ts';
import { agentRegisteredAs, readModels, type Told } from '../../support/rows.ts';
import { runs } from '../../support/runs.ts';
import { TASK } from '../../support/tasks.ts';
import { tokenReport } from '../../support/tokens.ts';

const NOW = Date.UTC(2026, 2, 3, 10, 20, 30, 400);
const EVENTS = 500;

const { below, pick } = seeded(11);

const NAMES = { 1: 'ada', 2: 'bob' } as const;
type Id = keyof typeof NAMES;

/** What one event says, and what a plain reading of it gives. */
interface Case {
  readonly at: number;
  readonly agent: Id;
  readonly draft: Draft;
  readonly activity?: string;
  readonly audit?: string;
  readonly status?: true;
  readonly mutation?: true;
  readonly comment?: true;
  readonly reports?: readonly TokenReport[];
}

const HOURS = [1, 2, 23, 24, 25, 47, 168, 719, 720];
/** On the edges of windows, hours and days, and just beside them. */
const moments = [
  ...HOURS.map((hours) => Math.floor(NOW / 1_000) * 1_000 - hours * HOUR_MS),
  Date.UTC(2026, 2, 3, 10),
  Date.UTC(2026, 2, 3),
  Date.UTC(2026, 2, 2),
  NOW,
].flatMap((at) => [at - 1_000, at - 1, at, at + 1]);

function caseOf(n: number): Case {
  const at = moments[n] ?? NOW - below(pick([HOUR_MS, DAY_MS, 3 * DAY_MS, 31 * DAY_MS]));
  const agent = pick<Id>([1, 2]);
  const about = { agent_id: agent, name: NAMES[agent] };
  switch (below(6)) {
    case 0: {
      const draft = sample(agentDetailsChanged, { ...about, changes: { role: `r${n}` }, via: 'id' });
      return { at, agent, draft, activity: 'agent_config_updated', audit: 'agent_updated', status: true };
    }
    case 1: {
      const task = { ...TASK, title: `t${n}`, created_by: 'ada', assigned_to: pick(['ada', 'bob']) };
      const draft = taskCreated.draft({ task_id: n + 1, task, source: 'api' });
      return { at, agent, draft, activity: 'task_created', mutation: true };
    }
    case 2: {
      const draft = sample(taskCommented, {
        task_id: 1_000,
        title: 't',
        comment_id: n + 1,
        author: 'ada',
        content: 'c'.repeat(300),
        mentions: ['bob'],
      });
      return { at, agent, draft, activity: 'comment_added', comment: true };
    }
    case 3: {
      const reports = Array.from({ length: 1 + below(4) }, (_, place) =>
        tokenReport(`r${n}-${place}`, {
          ...{
            model: pick(['m', 'n']),
            agent_id: pick([1, 2, null]),
            cost: below(1_000_000) / 1e9,
            price: pick(['own', 'default'] as const),
          },
          ...{ input_tokens: below(1_000), output_tokens: below(1_000) },
        }),
      );
      return { at, agent, draft: tokensReported.draft({ page: null, reports }), reports };
    }
    default: {
      const draft = sample(agentHeartbeatReceived, { ...about, last_activity: '' });
      return { at, agent, draft, activity: 'agent_heartbeat' };
    }
  }
}

const cases = Array.from({ length: EVENTS }, (_, n) => caseOf(n)).sort((a, b) => a.at - b.at);

const countBy = <T>(all: readonly T[], keyOf: (one: T) => string | undefined): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const one of all) {
    const key = keyOf(one);
    if (key !== undefined) counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
};

describe('queries: attribution', () => {
  const agents = new Map<Id, AgentRecord>();
  /** Positions by the index of a case; two agents come first. */
  const positionOf = (one: Case) => cases.indexOf(one) + 3;

  const models = readModels([
    leasesProjection,
    agentsProjection,
    agentAttributionProjection,
    activitiesProjection,
    auditProjection,
    tasksProjection,
    taskCommentsProjection,
    tokensProjection,
  ]);
  before(async () => {
    const own = ({ agent, at }: Case): Partial<DomainEvent['meta']> => ({
      at,
      actor: { type: 'agent', id: agent, name: `agent:${NAMES[agent]}` },
    });
    await models.tell(
      [agentRegisteredAs(1, 'ada', { session_key: 'k', soul_content: 's', config: { b: 1, a: 2 } }), { at: 1_000 }],
      [agentRegisteredAs(2, 'bob'), { at: 1_000 }],
      ...cases.map((one): Told => [one.draft, own(one)]),
    );
    for (const id of [1, 2] as const) agents.set(id, (await agentRecord(models.reads, 1, { id })) as AgentRecord);
  });

  const about = (id: Id) => ({ workspace: 1, agent: agents.get(id) as AgentRecord, view: allTasks(1) });
  const ALL = new Set(ATTRIBUTION_SECTIONS);
  const reportOf = async (id: Id, hours: number, now = NOW) => {
    const timeframe = windowOf(String(hours), now);
    return { timeframe, ...(await attributionOf(models.reads, about(id), timeframe, ALL)) };
  };

  /** The numbers of a window from the events themselves, with the events behind each. */
  function folded(id: Id, since: number) {
    const mine = cases.filter(({ at, agent }) => agent === id && Math.floor(at / 1_000) >= since);
    const reports = cases
      .filter(({ at }) => Math.floor(at / 1_000) >= since)
      .flatMap((one) =>
        (one.reports ?? []).filter(({ agent_id: agentId }) => agentId === id).map((report) => ({ one, report })),
      );
    const sum = (of: (report: TokenReport) => number) => reports.reduce((all, { report }) => all + of(report), 0);
    return {
      activities: mine.filter(({ activity }) => activity !== undefined),
      entries: mine.filter(({ audit }) => audit !== undefined),
      mutations: mine.filter(({ mutation }) => mutation),
      comments: mine.filter(({ comment }) => comment),
      statuses: mine.filter(({ status }) => status),
      reports,
      total: {
        input_tokens: sum((one) => one.input_tokens + one.cache_read_tokens + one.cache_write_tokens),
        output_tokens: sum(({ output_tokens: outputTokens }) => outputTokens),
        cost: sum(({ cost }) => Math.round(cost * 1e9)) / 1e9,
        estimated_cost: sum(({ cost, price }) => (price === 'default' ? Math.round(cost * 1e9) : 0)) / 1e9,
        requests: reports.length,
      },
    };
  }

  const newestFirst = (all: readonly Case[]) =>
    [...all].sort((a, b) => Math.floor(b.at / 1_000) - Math.floor(a.at / 1_000) || positionOf(b) - positionOf(a));

  async function check(id: Id, hours: number, now: number): Promise<void> {
    const { timeframe, report, sources } = await reportOf(id, hours, now);
    const plain = folded(id, timeframe.since);
    const what = `agent ${id}, ${hours} hours before ${new Date(now).toISOString()}`;
    const { audit, mutations, cost } = report;
    expect(audit, what).to.include({
      total_activities: plain.activities.length,
      total_entries: plain.entries.length,
    });
    expect(audit?.by_type, what).to.deep.equal(countBy(plain.activities, ({ activity }) => activity));
    expect(audit?.by_action, what).to.deep.equal(countBy(plain.entries, (one) => one.audit));
    const positions = (all: readonly { readonly position: number }[] | undefined) =>
      (all ?? []).map(({ position }) => position);
    const newest = (all: readonly Case[], limit: number) => newestFirst(all).slice(0, limit).map(positionOf);
    expect(positions(audit?.activities), what).to.deep.equal(newest(plain.activities, 200));
    expect(positions(audit?.audit_log_entries), what).to.deep.equal(newest(plain.entries, 100));
    expect(positions(mutations?.task_mutations), what).to.deep.equal(newest(plain.mutations, 100));
    expect(positions(mutations?.comments), what).to.deep.equal(newest(plain.comments, 50));
    expect(positions(mutations?.status_changes), what).to.deep.equal(newest(plain.statuses, 50));
    expect(mutations?.summary, what).to.deep.equal({
      task_mutations_count: plain.mutations.length,
      comments_count: plain.comments.length,
      status_changes_count: plain.statuses.length,
    });
    expect(cost?.total, what).to.deep.equal(plain.total);
    expect(Object.fromEntries((cost?.by_model ?? []).map((one) => [one.model, one.request_count])), what).to.deep.equal(
      countBy(plain.reports, ({ report: { model } }) => model),
    );
    expect(Object.fromEntries((cost?.daily_trend ?? []).map((day) => [day.date, day.requests])), what).to.deep.equal(
      countBy(plain.reports, ({ one: { at } }) => new Date(at).toISOString().slice(0, 10)),
    );
    const evidence = await evidenceOf(models.reads, about(id), sources, { timeframe, limit: 200 });
    expect(Object.keys(evidence), what).to.deep.equal([...sources.keys()]);
    expect(positions(evidence['audit.total_activities']?.events), what).to.deep.equal(newest(plain.activities, 200));
    expect(positions(evidence['mutations.summary.comments_count']?.events), what).to.deep.equal(
      newest(plain.comments, 200),
    );
    const reader = new EvidenceReader(models.events(), 1);
    checkAttribution({ ...report, evidence } as AttributionResponse, reader);
    const ranges = await evidenceOf(models.reads, about(id), sources, { timeframe, limit: 1 });
    checkAttribution({ ...report, evidence: ranges } as AttributionResponse, reader);
    const counted = (one: Evidence | undefined) => (one?.events ?? []).reduce((sum, { count }) => sum + count, 0);
    for (const [number, one] of Object.entries(evidence))
      if (one.next === null) expect(counted(one), `${what}: ${number}`).to.equal(one.total);
    const cents = (one: Evidence | undefined) =>
      (one?.events ?? []).reduce((sum, event) => sum + Math.round((event.cost ?? 0) * 1e9), 0) / 1e9;
    expect(cents(evidence['cost.total']), what).to.equal(plain.total.cost);
  }

  it('is exact for any start of its window', async () => {
    for (const hours of HOURS) for (const id of [1, 2] as const) await check(id, hours, NOW);
    for (let n = 0; n < runs(3, 30); n++) {
      const edge = pick(cases).at + pick([-1_000, -1, 0, 1, 1_000]);
      const hours = pick(HOURS);
      await check(pick<Id>([1, 2]), hours, edge + hours * HOUR_MS);
    }
  });

  it('matches the declared response schema', async () => {
    const { timeframe, report, sources } = await reportOf(1, 720);
    const evidence = await evidenceOf(models.reads, about(1), sources, { timeframe, limit: 3 });
    const answer = { agent_name: 'ada', timeframe, access_scope: 'self', ...report, evidence };
    expect(attributionResponse.parse(answer)).to.deep.equal(answer);
    expect(report.identity).to.include({ name: 'ada', session_key: '***', has_soul: true });
    expect(report.identity?.config_keys).to.have.members(['a', 'b']);
    expect(report.identity?.lifetime_stats).to.include({
      comments_authored: cases.filter(({ agent, comment }) => agent === 1 && comment).length,
      tasks_active: 0,
    });
    expect((await reportOf(2, 720)).report.identity).to.include({ session_key: null, has_soul: false });
  });

  it('contains only the requested sections', async () => {
    for (const section of ATTRIBUTION_SECTIONS) {
      const { report, sources } = await attributionOf(
        models.reads,
        about(1),
        windowOf(undefined, NOW),
        new Set([section]),
      );
      expect(Object.keys(report)).to.deep.equal([section]);
      for (const number of sources.keys()) expect(number.split('.')[0]).to.equal(section);
    }
  });

  it('links each number to all of its events, page by page, while more events are written', async () => {
    const { timeframe, sources } = await reportOf(1, 720);
    const first = await evidenceOf(models.reads, about(1), sources, { timeframe, limit: 7 });
    // The same again, newer than every page.
    const beat = cases.find(({ activity }) => activity === 'agent_heartbeat') as Case;
    await models.tell([beat.draft, { at: NOW, actor: { type: 'agent', id: 1, name: 'agent:ada' } }]);
    for (const [number, page] of Object.entries(first)) {
      const found = [...page.events];
      let { next } = page;
      while (next !== null) {
        const cursor = readCursor(next, NOW + 5_000);
        expect(cursor.timeframe).to.deep.equal(timeframe);
        const later = (await attributionOf(models.reads, about(1), cursor.timeframe, ALL)).sources.get(number);
        if (!later) throw new Error(`${number} is gone`);
        const asked = { timeframe: cursor.timeframe, limit: 7, after: cursor };
        const more = await evidenceOf(models.reads, about(1), new Map([[number, later]]), asked);
        const one = more[number] as Evidence;
        expect(one.total).to.equal(page.total);
        expect(one.events.length).to.be.within(1, 7);
        found.push(...one.events);
        next = one.next;
      }
      expect(new Set(found.map(({ position }) => position)).size, number).to.equal(found.length);
      expect(
        found.reduce((sum, { count }) => sum + count, 0),
        number,
      ).to.equal(page.total);
    }
  });
});
