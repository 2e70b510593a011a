/** Numbers from the events that evidence names, by the rules of `docs/evidence.md` and nothing else. */
import { expect } from 'chai';
import type { Derivation, Derivations } from '../../shared/contract/evidence.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { DomainEvent, EventDefinition } from '../../shared/events/define.ts';
import { activityOf } from '../../shared/events/monitoring/activities.ts';
import type { AgentsWorld } from './worlds/agents.ts';

/** What `GET /api/history/events` shows of an event, as far as the rules need it. */
export type Logged = Pick<DomainEvent, 'id' | 'position' | 'type' | 'stream' | 'data' | 'meta'>;

/** The whole log over HTTP. */
export async function logOf({ ask }: Pick<AgentsWorld, 'ask'>): Promise<Logged[]> {
  const all: Logged[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const { status, body } = await ask('GET', `/api/history/events?open=1&limit=1000&after=${after}`);
    expect(status, JSON.stringify(body)).to.equal(200);
    all.push(...body.events);
    after = body.next_after;
  }
  return all;
}

interface Report {
  readonly id: string;
  readonly model: string;
  readonly sessionId: string;
  readonly agentId: number | null;
  readonly agentName: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cost: number;
  /** Unix ms. */
  readonly at: number;
}

export interface Sums {
  readonly requests: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** Billionths of a US dollar. */
  readonly cost: number;
}

const secondOf = ({ meta }: Logged): number => Math.floor(meta.at / 1_000);

function reportsIn({ id, type, data, meta }: Logged): readonly Report[] {
  if (type === 'TokensReported') return (data.reports as Report[]).map((one) => ({ ...one, at: meta.at }));
  if (type === 'TokenUsageReported') return [{ cost: 0, ...data, id, at: meta.at } as Report];
  return [];
}

export class EvidenceReader {
  private readonly log: readonly Logged[];
  private readonly positions: ReadonlyMap<number, Logged>;
  /** By position. */
  private readonly reported: ReadonlyMap<number, readonly Report[]>;
  /** When reports were removed, by id, Unix ms. */
  private readonly purged: ReadonlyMap<string, number>;
  private readonly found = new WeakMap<Derivation, readonly Report[]>();

  /** @param log in log order; other workspaces may be in it */
  constructor(log: readonly Logged[], workspace: number) {
    this.log = log.filter(({ meta }) => meta.workspace === workspace);
    this.positions = new Map(this.log.map((event) => [event.position, event]));
    this.reported = new Map(this.log.map((event) => [event.position, reportsIn(event)]));
    this.purged = new Map(
      this.log.flatMap(({ type, data, meta }) =>
        type === 'TokenReportsPurged' ? (data.ids as string[]).map((id) => [id, meta.at] as const) : [],
      ),
    );
  }

  /** The events of a derivation, each of which must be there and of the workspace. */
  private eventsOf({ positions, from, to, types }: Derivation): Logged[] {
    if (!positions) {
      expect(from).to.be.a('number');
      // The ends are events of the workspace, or the beginning of the log.
      for (const end of [from, to]) if (end !== 0) this.at(end as number);
      return this.log.filter(
        ({ position, type }) => position >= Number(from) && position <= Number(to) && (!types || types.includes(type)),
      );
    }
    expect(positions).to.deep.equal([...new Set(positions)].sort((a, b) => a - b));
    return positions.map((position) => this.at(position));
  }

  private at(position: number): Logged {
    const found = this.positions.get(position);
    if (!found) throw new Error(`${position} is no event of the workspace`);
    return found;
  }

  /** Whether an agent had a name at a time; in the second of a change, both. */
  private had(agent: number, name: string, at: number): boolean {
    const named = this.log.flatMap((event) => {
      const {
        agentId,
        name: given,
        changes,
      } = event.data as {
        agentId?: number;
        name?: string;
        changes?: { name?: string };
      };
      if (agentId !== agent) return [];
      const now =
        event.type === 'AgentRegistered' ? given : event.type === 'AgentDetailsChanged' ? changes?.name : undefined;
      return now === undefined ? [] : [{ name: now, since: secondOf(event) }];
    });
    return named.some(
      (one, n) => one.name === name && at >= one.since && at <= (named[n + 1]?.since ?? Number.POSITIVE_INFINITY),
    );
  }

  private within(event: Logged, { since, until }: NonNullable<Derivation['filter']>): boolean {
    const at = secondOf(event);
    return at >= Number(since) && (until === undefined || at < Number(until));
  }

  private definition({ type }: Logged): EventDefinition {
    const found = catalogue.get(type);
    if (!found) throw new Error(`${type} is no event`);
    return found as EventDefinition;
  }

  private countsAs(event: Logged, { rule, filter = {} }: Derivation): boolean {
    const whole = event as DomainEvent;
    const agent = Number(filter.agent_id);
    if (!this.within(event, filter)) return false;
    if (rule === 'activities') {
      const activity = activityOf(this.definition(event), whole);
      return (
        activity !== undefined &&
        activity.type === (filter.type ?? activity.type) &&
        this.had(agent, activity.actor, secondOf(event))
      );
    }
    return (this.definition(event).signals?.(whole) ?? []).some(
      (signal) =>
        signal.kind === filter.kind &&
        signal.type === (filter.type ?? signal.type) &&
        this.had(agent, signal.agent, secondOf(event)),
    );
  }

  private tasks(derivation: Derivation): number {
    const { positions, filter = {} } = derivation;
    const events = this.eventsOf(derivation);
    const last = new Map(events.map(({ data, position }) => [data.taskId, position]));
    const placeOf = (task: unknown, upTo: number) => {
      const own = this.log.filter(({ data, position }) => data.taskId === task && position <= upTo);
      if (own.some(({ type }) => type === 'TaskDeleted')) return undefined;
      const placed = own.map(({ data }) => (data.after ?? data.task) as Record<string, unknown> | undefined);
      return placed.filter((one) => one !== undefined).at(-1);
    };
    const places = [...last].map(([task, position]) => placeOf(task, positions ? position : Number(derivation.to)));
    return places.filter(
      (place) =>
        place?.assignedTo === filter.assigned_to &&
        place?.status === (filter.status ?? place?.status) &&
        place?.priority === (filter.priority ?? place?.priority),
    ).length;
  }

  /** The reports of a derivation. */
  reports(derivation: Derivation): readonly Report[] {
    const known = this.found.get(derivation);
    if (known) return known;
    const { filter = {} } = derivation;
    const found = this.eventsOf(derivation)
      .flatMap(({ position }) => this.reported.get(position) ?? [])
      .filter(
        (one) =>
          (this.purged.get(one.id) ?? Number.POSITIVE_INFINITY) > Number(filter.purged_until) &&
          one.at >= Number(filter.since ?? 0) &&
          one.at < Number(filter.until ?? Number.POSITIVE_INFINITY) &&
          one.model === (filter.model ?? one.model) &&
          one.sessionId === (filter.session_id ?? one.sessionId) &&
          (filter.agent_id === undefined || one.agentId === filter.agent_id) &&
          one.agentName === (filter.agent_name ?? one.agentName),
      );
    this.found.set(derivation, found);
    return found;
  }

  sums(derivation: Derivation): Sums {
    const reports = this.reports(derivation);
    const sum = (of: (report: Report) => number) => reports.reduce((all, one) => all + of(one), 0);
    return {
      requests: reports.length,
      input_tokens: sum(({ inputTokens }) => inputTokens),
      output_tokens: sum(({ outputTokens }) => outputTokens),
      cost: sum(({ cost }) => Math.round(cost * 1e9)),
    };
  }

  /** What a derivation counts. */
  count(derivation: Derivation): number {
    if (derivation.rule === 'tasks') return this.tasks(derivation);
    if (derivation.rule === 'reports') return this.reports(derivation).length;
    const events = this.eventsOf(derivation);
    const counted = events.filter((event) => this.countsAs(event, derivation)).length;
    // Of listed events, each counts.
    if (derivation.positions) expect(counted).to.equal(events.length);
    return counted;
  }
}

const rounded = (value: number): number => Math.round(value * 100) / 100;
const change = (now: number, before: number): number =>
  before === 0 ? (now > 0 ? 100 : 0) : rounded((100 * (now - before)) / before);

/** Checks that there is evidence for each number of diagnostics, and that each follows from the log. */
export function checkDiagnostics(
  // biome-ignore lint/suspicious/noExplicitAny: looked into freely.
  body: any,
  reader: EvidenceReader,
): void {
  const evidence: Derivations = body.evidence;
  const left = new Set(Object.keys(evidence));
  const of = (name: string): Derivation => {
    left.delete(name);
    const found = evidence[name];
    if (!found) throw new Error(`no evidence for ${name}`);
    return found;
  };
  const counted = (name: string, number: number) => {
    expect(of(name).total, name).to.equal(number);
    expect(reader.count(of(name)), name).to.equal(number);
  };
  const { summary, tasks, errors, activity, trends, tokens, timeframe } = body;
  if (summary) {
    for (const name of ['tasks_completed', 'tasks_total', 'activity_count', 'error_count'])
      counted(`summary.${name}`, summary[name]);
    const rate = of('summary.error_rate_percent');
    expect(rate).to.include({ total: summary.error_rate_percent, rule: 'derived' });
    const [failed = 0, all = 0] = (rate.numbers ?? []).map((name) => reader.count(of(name)));
    expect(summary.error_rate_percent).to.equal(failed === 0 ? 0 : rounded((100 * failed) / Math.max(all, failed)));
  }
  if (tasks) {
    for (const by of ['by_status', 'by_priority'])
      for (const [name, number] of Object.entries(tasks[by])) counted(`tasks.${by}.${name}`, number as number);
    const completed = reader.count(of('tasks.throughput_per_day'));
    expect(tasks.throughput_per_day).to.equal(rounded(completed / Math.max(timeframe.hours / 24, 1)));
  }
  if (errors) {
    counted('errors.total', errors.total);
    for (const { type, count } of errors.by_type) counted(`errors.by_type.${type}`, count);
  }
  if (activity) {
    for (const { type, count } of activity.by_type) counted(`activity.by_type.${type}`, count);
    for (const { timestamp, count } of activity.timeline) counted(`activity.timeline.${timestamp}`, count);
  }
  if (trends) {
    for (const period of ['current_period', 'previous_period'])
      for (const name of ['activities', 'errors', 'tasks_completed'])
        counted(`trends.${period}.${name}`, trends[period][name]);
    for (const [name, percent] of Object.entries(trends.change)) {
      const [now = 0, before = 0] = (of(`trends.change.${name}`).numbers ?? []).map((one) => reader.count(of(one)));
      expect(percent, name)
        .to.equal(change(now, before))
        .and.to.equal(of(`trends.change.${name}`).total);
    }
  }
  if (tokens) {
    const { cost: _, ...total } = reader.sums(of('tokens.total'));
    expect(tokens.total).to.deep.equal(total);
    for (const { model, request_count: requests, ...sums } of tokens.by_model) {
      const { cost: __, ...own } = reader.sums(of(`tokens.by_model.${model}`));
      expect({ ...sums, requests }, model).to.deep.equal(own);
    }
  }
  expect([...left], 'evidence of numbers that are not shown').to.deep.equal([]);
}

/** Sums as statistics show them. */
function statsFrom({ requests, input_tokens, output_tokens, cost }: Sums) {
  const [tokens, dollars] = [input_tokens + output_tokens, cost / 1e9];
  return {
    totalTokens: tokens,
    totalCost: dollars,
    requestCount: requests,
    avgTokensPerRequest: requests === 0 ? 0 : Math.round(tokens / requests),
    avgCostPerRequest: requests === 0 ? 0 : dollars / requests,
  };
}

/** Checks that each number of a response about tokens has evidence, and follows from the log. */
export function checkTokens(
  // biome-ignore lint/suspicious/noExplicitAny: looked into freely.
  body: any,
  reader: EvidenceReader,
): void {
  const evidence: Derivations = body.evidence;
  const left = new Set(Object.keys(evidence));
  const of = (name: string): Derivation => {
    left.delete(name);
    const found = evidence[name];
    if (!found) throw new Error(`no evidence for ${name}`);
    expect(found.total, name).to.equal(reader.reports(found).length);
    return found;
  };
  if (body.usage) expect(body.total).to.equal(of('total').total);
  if (body.recordCount !== undefined) {
    expect(body.recordCount).to.equal(of('summary').total);
    expect(body.summary).to.deep.equal(statsFrom(reader.sums(of('summary'))));
    for (const by of ['models', 'sessions', 'agents'])
      for (const [name, stats] of Object.entries(body[by]))
        expect(stats, `${by}.${name}`).to.deep.equal(statsFrom(reader.sums(of(`${by}.${name}`))));
  }
  for (const { timestamp, ...hour } of body.trends ?? []) {
    const { requests, input_tokens, output_tokens, cost } = reader.sums(of(`trends.${timestamp}`));
    expect(hour, timestamp).to.deep.equal({ tokens: input_tokens + output_tokens, cost: cost / 1e9, requests });
  }
  if (Array.isArray(body.agents)) {
    const all = reader.reports(of('summary'));
    const { cost, input_tokens, output_tokens } = reader.sums(of('summary'));
    expect(body.summary).to.deep.equal({
      total_cost: cost / 1e9,
      total_tokens: input_tokens + output_tokens,
      agent_count: new Set(all.map(({ agentId, agentName }) => agentId ?? agentName)).size,
      days: body.summary.days,
    });
    for (const { agent, models, ...shown } of body.agents) {
      const sums = reader.sums(of(`agents.${agent}`));
      const own = reader.reports(of(`agents.${agent}`));
      expect(shown, agent).to.deep.equal({
        agent_id: own[0]?.agentId,
        total_input_tokens: sums.input_tokens,
        total_output_tokens: sums.output_tokens,
        total_tokens: sums.input_tokens + sums.output_tokens,
        total_cost: sums.cost / 1e9,
        session_count: new Set(own.map(({ sessionId }) => sessionId)).size,
        request_count: sums.requests,
        last_active: new Date(Math.max(...own.map(({ at }) => at))).toISOString(),
      });
      for (const { model, request_count: requests, cost: dollars, ...tokens } of models)
        expect({ ...tokens, requests, cost: Math.round(dollars * 1e9) }, model).to.deep.equal(
          reader.sums(of(`agents.${agent}.models.${model}`)),
        );
    }
  }
  expect([...left], 'evidence of numbers that are not shown').to.deep.equal([]);
}
