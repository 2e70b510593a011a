/** Numbers from the events that evidence names, by the rules of `docs/evidence.md` and nothing else. */
import { expect } from 'chai';
import type { Condition, Cooldown } from '../../shared/contract/alerts/conditions.ts';
import type { Derivation } from '../../shared/contract/evidence.ts';
import { attributedTo } from '../../shared/events/agents/attribution.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { DomainEvent, EventDefinition } from '../../shared/events/define.ts';
import { activityOf } from '../../shared/events/monitoring/activities.ts';
import { auditOf } from '../../shared/events/monitoring/audit.ts';
import { creatorAgentOf } from '../../shared/events/tasks/tasks.ts';
import { triggersOf } from './alerts.ts';
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
  readonly session_id: string;
  readonly agent_id: number | null;
  readonly agent_name: string;
  readonly task_id: number | null;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  readonly cost: number;
  readonly price: string;
  /** Unix ms; null: the time of the event. */
  readonly used_at: number | null;
  readonly at: number;
}

export interface Sums {
  readonly requests: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** Billionths of a US dollar. */
  readonly cost: number;
  readonly estimated: number;
}

type Filter = NonNullable<Derivation['filter']>;

/** Whether a filter lets a value through: any, this one, or one of a list. */
const allows = (wanted: Filter[string] | undefined, value: unknown): boolean =>
  wanted === undefined || (Array.isArray(wanted) ? wanted.includes(value as string) : wanted === value);

/** By the id of the agent; by name if the task has no id, or none is known. */
const isAssigned = ({ assignee_id, assigned_to }: Record<string, unknown>, id: unknown, name: unknown): boolean =>
  typeof id === 'number' && assignee_id !== undefined ? assignee_id === id : assigned_to === name;

const secondOf = ({ meta }: Logged): number => Math.floor(meta.at / 1_000);

function reportsIn({ type, data, meta }: Logged): readonly Report[] {
  if (type === 'TokensReported')
    return (data.reports as Report[]).map((one) => ({ ...one, at: one.used_at ?? meta.at }));
  return [];
}

export class EvidenceReader {
  private readonly log: readonly Logged[];
  private readonly positions: ReadonlyMap<number, Logged>;
  /** By id. */
  private readonly ofTask = new Map<unknown, Logged[]>();
  /** By position. */
  private readonly reported: ReadonlyMap<number, readonly Report[]>;
  /** When reports were removed, by id, Unix ms. */
  private readonly purged: ReadonlyMap<string, number>;
  private readonly found = new WeakMap<Derivation, readonly Report[]>();

  /** @param log in log order; other workspaces may be in it */
  constructor(log: readonly Logged[], workspace: number) {
    this.log = log.filter(({ meta }) => meta.workspace === workspace);
    this.positions = new Map(this.log.map((event) => [event.position, event]));
    for (const event of this.log) {
      const { task_id: taskId } = event.data;
      if (taskId === undefined) continue;
      const known = this.ofTask.get(taskId);
      if (known) known.push(event);
      else this.ofTask.set(taskId, [event]);
    }
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
  private had(agent: number, name: string, at: number, position: number): boolean {
    const named = this.log.flatMap((event) => {
      const {
        agent_id: agentId,
        name: given,
        changes,
      } = event.data as {
        agent_id?: number;
        name?: string;
        changes?: { name?: string };
      };
      if (agentId !== agent) return [];
      const now =
        event.type === 'AgentRegistered' ? given : event.type === 'AgentDetailsChanged' ? changes?.name : undefined;
      return now === undefined ? [] : [{ name: now, since: secondOf(event), from: event.position }];
    });
    return named.some(
      (one, n) =>
        one.name === name &&
        position >= one.from &&
        at >= one.since &&
        at <= (named[n + 1]?.since ?? Number.POSITIVE_INFINITY),
    );
  }

  private within(event: Logged, { since, until }: Filter): boolean {
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
    if (rule === 'actions') return this.isAction(event, filter);
    if (rule === 'activities') {
      const activity = activityOf(this.definition(event), whole);
      return (
        activity !== undefined &&
        activity.type === (filter.type ?? activity.type) &&
        this.had(agent, activity.actor, secondOf(event), event.position)
      );
    }
    return (this.definition(event).signals?.(whole) ?? []).some(
      (signal) =>
        signal.kind === filter.kind &&
        signal.type === (filter.type ?? signal.type) &&
        this.had(agent, signal.agent, secondOf(event), event.position),
    );
  }

  /** Whether the agent left a record of this kind by an event. */
  private isAction(event: Logged, { agent_id, kind, type, entity_type }: Filter): boolean {
    const definition = this.definition(event);
    const whole = event as DomainEvent;
    if (attributedTo(definition, whole)?.agent_id !== agent_id) return false;
    const entry = auditOf(definition, whole);
    const activity = activityOf(definition, whole);
    if (kind === 'audit') return entry !== undefined && allows(type, entry.action);
    return activity !== undefined && allows(type, activity.type) && allows(entity_type, activity.entity_type);
  }

  /** Where a task is after an event; undefined: there is none. */
  private placeOf(task: unknown, upTo: number): Record<string, unknown> | undefined {
    const own = (this.ofTask.get(task) ?? []).filter(({ position }) => position <= upTo);
    if (own.some(({ type }) => type === 'TaskDeleted')) return undefined;
    const placed = own.map(({ data }) => (data.after ?? data.task) as Record<string, unknown> | undefined);
    return placed.filter((one) => one !== undefined).at(-1);
  }

  private tasks(derivation: Derivation): number {
    const { positions, filter = {} } = derivation;
    const events = this.eventsOf(derivation);
    const last = new Map(events.map(({ data, position }) => [data.task_id, position]));
    const places = [...last].map(([task, position]) =>
      this.placeOf(task, positions ? position : Number(derivation.to)),
    );
    return places.filter(
      (place) =>
        place !== undefined &&
        isAssigned(place, filter.assignee_id, filter.assigned_to) &&
        allows(filter.status, place.status) &&
        allows(filter.priority, place.priority),
    ).length;
  }

  /** Whether the task of a report is one of those that a filter names. */
  private hasTask(
    { task_id: taskId }: Report,
    { tasks, tasks_until, seen_by, seen_by_id, project_id }: Filter,
  ): boolean {
    if (tasks === undefined) return true;
    if (taskId === null || tasks === 'any') return taskId !== null;
    expect(tasks).to.equal('existing');
    const place = this.placeOf(taskId, Number(tasks_until));
    if (!place) return false;
    const made = this.ofTask.get(taskId)?.find(({ type }) => type === 'TaskCreated') as Logged;
    const creator = creatorAgentOf(made.meta as DomainEvent['meta']);
    const isSeen = isAssigned(place, seen_by_id, seen_by) || (typeof seen_by_id === 'number' && creator === seen_by_id);
    if (seen_by !== undefined && !isSeen) return false;
    const exists = this.log.some(({ type, data }) => type === 'ProjectCreated' && data.project_id === place.project_id);
    return allows(project_id, exists ? place.project_id : null);
  }

  /** Of alert rules that events changed, how many were enabled then. */
  private enabledRules(derivation: Derivation): number {
    return this.eventsOf(derivation).filter(({ data: { rule_id }, position }) => {
      const own = this.log.filter((one) => one.data.rule_id === rule_id && one.position <= position);
      const said = own.map(({ type, data }) => (type === 'AlertRuleDeleted' ? false : data.enabled));
      return said.filter((enabled) => enabled !== undefined).at(-1) === derivation.filter?.enabled;
    }).length;
  }

  /** When an alert rule would have triggered, Unix seconds. */
  triggers(derivation: Derivation): readonly number[] {
    const { since, until, every_seconds, ...rule } = derivation.filter ?? {};
    const every = Number(every_seconds);
    return triggersOf(
      this.log.filter(({ position }) => position >= Number(derivation.from) && position <= Number(derivation.to)),
      rule as unknown as Condition & Cooldown,
      { first: Math.ceil(Number(since) / every) * every, last: Number(until), every },
    );
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
          allows(filter.model, one.model) &&
          allows(filter.session_id, one.session_id) &&
          allows(filter.agent_id, one.agent_id) &&
          allows(filter.agent_name, one.agent_name) &&
          allows(filter.task_id, one.task_id) &&
          this.hasTask(one, filter),
      );
    this.found.set(derivation, found);
    return found;
  }

  sums(derivation: Derivation): Sums {
    const reports = this.reports(derivation);
    const sum = (of: (report: Report) => number) => reports.reduce((all, one) => all + of(one), 0);
    return {
      requests: reports.length,
      input_tokens: sum((one) => one.input_tokens + one.cache_read_tokens + one.cache_write_tokens),
      output_tokens: sum(({ output_tokens: outputTokens }) => outputTokens),
      cost: sum(({ cost }) => Math.round(cost * 1e9)),
      estimated: sum(({ cost, price }) => (price === 'default' ? Math.round(cost * 1e9) : 0)),
    };
  }

  /** What a derivation counts. */
  count(derivation: Derivation): number {
    if (derivation.rule === 'tasks') return this.tasks(derivation);
    if (derivation.rule === 'reports') return this.reports(derivation).length;
    if (derivation.rule === 'replay') return this.triggers(derivation).length;
    const events = this.eventsOf(derivation);
    const { rule_id } = derivation.filter ?? {};
    const counted =
      derivation.rule === 'rules'
        ? this.enabledRules(derivation)
        : derivation.rule === 'triggers'
          ? events.filter(({ type, data }) => type === 'AlertRuleTriggered' && allows(rule_id, data.rule_id)).length
          : events.filter((event) => this.countsAs(event, derivation)).length;
    // Of listed events, each counts.
    if (derivation.positions) expect(counted).to.equal(events.length);
    return counted;
  }
}
