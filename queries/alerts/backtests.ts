/**
 * How often a rule would have triggered in the past: the events since then are replayed, and the condition is evaluated
 * at each time at which the schedule would have done so.
 *
 * Records that have not changed since then are as they are now, so the database computes their contribution. For the
 * others, only the events of the requested period are read, and as many earlier ones of their own streams as are needed
 * for the values of their fields at its start. So the cost depends on the requested period, not on the history before
 * it, and it is bounded: if there are too many events, the response covers a shorter period, and says so.
 */
import { agentsProjection, agentsTable } from '../../projections/agents/agents.ts';
import { keyText } from '../../projections/apply.ts';
import { activitiesProjection, activitiesTable } from '../../projections/monitoring/activities.ts';
import type { Change, Projection, Table } from '../../projections/projection.ts';
import { cliSessionsTable, sessionsProjection } from '../../projections/sessions.ts';
import { tasksProjection, tasksTable } from '../../projections/tasks/tasks.ts';
import {
  type Condition,
  type Cooldown,
  coolsRecords,
  type EntityType,
  intervalOf,
  type Presence,
  replayed,
  type Seen,
  thresholdOf,
} from '../../shared/contract/alerts/conditions.ts';
import type { Backtest } from '../../shared/contract/alerts/rules.ts';
import { unavailable } from '../../shared/errors.ts';
import type { EventStore } from '../../shared/event-store.ts';
import { heartbeatsReceived } from '../../shared/events/agents/heartbeat.ts';
import type { DomainEvent, EventOf } from '../../shared/events/define.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { HOUR, seconds } from '../../shared/time.ts';
import { takingTurns } from '../../shared/waiting.ts';
import { lastBeatsUpTo } from '../agents/leases.ts';
import type { Reads } from '../reads.ts';
import { columnNameOf, isLeased, unchangedSince } from './conditions.ts';
import { backtestDerivations } from './evidence.ts';

export interface BacktestBounds {
  /** Maximum number of replayed events of the whole log. */
  readonly events: number;
  /** Maximum number of earlier events of single records that are read. */
  readonly earlier: number;
  /** Time limit for all reads, milliseconds. */
  readonly timeMs: number;
}

export const BACKTEST_BOUNDS: BacktestBounds = { events: 100_000, earlier: 20_000, timeMs: 10_000 };

/** Bytes per batch. */
const BATCH_BYTES = 1_000_000;
/** Number of earlier events of a record in the first read; it doubles with each further read. */
const FIRST_STEP = 8;
/** Clocks of processes may differ by this much, seconds. */
const SKEW = 60;
const LISTED = 100;

interface Source {
  readonly projection: Projection;
  readonly table: Table;
}
const SOURCES = {
  agent: { projection: agentsProjection, table: agentsTable },
  task: { projection: tasksProjection, table: tasksTable },
  session: { projection: sessionsProjection, table: cliSessionsTable },
  activity: { projection: activitiesProjection, table: activitiesTable },
} as Readonly<Record<EntityType, Source>>;

type AnyRow = Readonly<Record<string, unknown>>;

/** A value that no event has shown yet. */
const UNKNOWN: unknown = Object.freeze({});

/** The condition's view of a record from a time on; undefined: there is no such record. */
interface Moment {
  readonly from: number;
  readonly seen: { readonly [K in keyof Seen]: Seen[K] | typeof UNKNOWN } | undefined;
}

interface Tracked {
  readonly id: number;
  readonly stream: string;
  /** Revision of the record's first event in the requested period; undefined: its stream has none. */
  revision: number | undefined;
  row: AnyRow | undefined;
  readonly moments: Moment[];
}

export interface BacktestParts {
  readonly reads: Reads;
  readonly store: Pick<EventStore, 'log' | 'decode'>;
  /** Unix ms */
  readonly now: () => number;
  /** Interval of the scheduled evaluations, seconds. */
  readonly everySeconds: number;
  readonly bounds?: BacktestBounds;
}

type Rule = Condition & Cooldown;

/** A backtest, and the position of the log that it shows. */
export interface Backtested {
  readonly backtest: Omit<Backtest, 'rule_id'>;
  readonly position: Position;
}

/** Backtests of one process. They read much of the log, so one runs at a time. */
export interface Backtests {
  /** @throws AppError 503 when too many wait for their turn */
  run(workspace: number, rule: Rule, hours: number, evident?: boolean): Promise<Backtested>;
}

/** Maximum number of callers, including the one whose backtest is running. */
const MAX_WAITING = 5;

export function createBacktests(parts: BacktestParts): Backtests {
  const inTurn = takingTurns();
  let waiting = 0;
  return {
    async run(workspace, rule, hours, evident) {
      if (waiting >= MAX_WAITING)
        throw unavailable('Too many rules are being tried on the past; try again in a moment.');
      waiting++;
      try {
        return await inTurn(() => backtest(parts, workspace, rule, hours, evident));
      } finally {
        waiting--;
      }
    },
  };
}

/** @param evident include the events behind the numbers */
export async function backtest(
  parts: BacktestParts,
  workspace: number,
  rule: Rule,
  hours: number,
  evident = false,
): Promise<Backtested> {
  const { store, everySeconds, bounds = BACKTEST_BOUNDS } = parts;
  const deadline = parts.now() + bounds.timeMs;
  const until = seconds(parts.now());
  const isActivity = rule.entity_type === 'activity';
  const asked = until - hours * HOUR;
  // Activities of the preceding hour still count at the beginning.
  const start = await startOf(
    store,
    isActivity ? asked - HOUR : asked,
    { ...bounds, deadline: deadline - bounds.timeMs / 2 },
    parts.now,
  );
  const { least } = thresholdOf(rule);
  const since = Math.max(asked, start.isCut && isActivity ? start.at + HOUR : start.at);
  const first = Math.ceil(since / everySeconds) * everySeconds;
  const evaluations = coolsRecords(rule) ? { first, everySeconds } : undefined;
  // The records as they are at one position, then the events up to there: none is missed in between.
  const reads = parts.reads.response({ since: performance.now() });
  const base = await unchangedSince(reads, workspace, rule, start.position, least, evaluations);
  const end = reads.position ?? Number.POSITIVE_INFINITY;
  const replay = createReplay({ ...parts, reads }, workspace, rule, start.at);
  let late = false;
  let to = start.position;
  for await (const batch of store.log.readAll({ from: start.position, maxBytes: BATCH_BYTES })) {
    for (const logged of batch.filter(({ position }) => position <= end)) {
      await replay.apply(logged);
      to = logged.position;
    }
    late = parts.now() > deadline;
    if (late || (batch.at(-1)?.position ?? 0) >= end) break;
  }
  const unresolved = await replay.resolve({ most: bounds.earlier, deadline, position: start.position });
  const last = late ? replay.reached() : until;
  const done = replayed(rule, replay.presences(base.times), { always: base.matching, first, last, everySeconds });
  const { evaluated, triggers, until: reached } = done;
  late ||= reached < last;
  const complete = !start.isCut && !late && unresolved === 0;
  const numbers = { since, until: reached, evaluated, triggered: triggers.length };
  const isExact = !late && unresolved === 0;
  const found = {
    hours,
    since,
    until: reached,
    complete,
    evaluated,
    triggered: triggers.length,
    triggers: triggers.slice(0, LISTED),
    message: messageOf({ complete, isCut: start.isCut, late, unresolved, bounds }),
    ...(evident && { evidence: backtestDerivations(numbers, rule, everySeconds, isExact ? to : undefined) }),
  };
  return { backtest: found, position: late ? to : Math.max(to, Number.isFinite(end) ? end : 0) };
}

function messageOf(of: {
  readonly complete: boolean;
  readonly isCut: boolean;
  readonly late: boolean;
  readonly unresolved: number;
  readonly bounds: BacktestBounds;
}): string {
  if (of.complete) return 'The whole time was replayed.';
  const parts = [
    of.isCut && `There was too much to replay: only the time after \`since\` was, at most ${of.bounds.events} events.`,
    of.late && 'There was too much to replay: only the time before `until` was.',
    of.unresolved > 0 &&
      `${of.unresolved} records are left out until the first change that tells what they were: their history is too long.`,
  ];
  return parts.filter((part) => part !== false).join(' ');
}

/** Where to begin: after the last event before the wanted time, or as far back as the limits allow. */
async function startOf(
  store: BacktestParts['store'],
  wanted: number,
  { events, deadline }: { readonly events: number; readonly deadline: number },
  now: () => number,
): Promise<{ readonly position: number; readonly at: number; readonly isCut: boolean }> {
  let read = 0;
  let oldest: LoggedEvent | undefined;
  for await (const batch of store.log.readAll({ direction: 'backwards', maxBytes: BATCH_BYTES })) {
    for (const event of batch) {
      if (timeOf(event) < wanted - SKEW) return { position: event.position, at: wanted, isCut: false };
      oldest = event;
      read++;
      // The event itself is not replayed: its changes are part of the initial state.
      if (read >= events) return { position: event.position, at: timeOf(event), isCut: true };
    }
    if (oldest && now() > deadline) return { position: oldest.position, at: timeOf(oldest), isCut: true };
  }
  // The whole log is younger: before its first event, no rule was evaluated.
  return { position: 0, at: oldest ? Math.max(wanted, timeOf(oldest)) : wanted, isCut: false };
}

const timeOf = ({ meta }: LoggedEvent): number => seconds(Number(meta.at));

type Summary = EventOf<typeof heartbeatsReceived>['data'];

/** Tracks the records of the replayed events, as far as the condition depends on them. */
function createReplay({ reads, store, now }: BacktestParts, workspace: number, condition: Condition, startAt: number) {
  const { projection, table } = SOURCES[condition.entity_type];
  const field = columnNameOf(condition);
  const tracked = new Map<string, Tracked>();
  let clock = startAt;

  const leased = isLeased(condition);
  const changesOf = (event: DomainEvent): readonly Change[] =>
    projection.project(event).filter((one) => one.table === table && one.key.workspace_id === workspace);

  /** A row whose fields in the condition are all unknown; other fields do not matter. */
  const unknownRow = (): AnyRow =>
    Object.fromEntries(
      Object.entries(table.columns).map(([name, type]) => {
        if (name === field || name === 'status' || name === 'terminated') return [name, UNKNOWN];
        return [name, String(type).startsWith('json') ? {} : String(type).startsWith('text') ? '' : 0];
      }),
    );

  const liveOf = (row: AnyRow): boolean | typeof UNKNOWN => {
    if (condition.entity_type === 'agent') return row.status === UNKNOWN ? UNKNOWN : row.status !== 'offline';
    if (condition.entity_type === 'session') return row.terminated === UNKNOWN ? UNKNOWN : row.terminated !== true;
    return true;
  };
  const seenOf = (row: AnyRow | undefined): Moment['seen'] =>
    row && {
      value: row[field] ?? null,
      live: liveOf(row),
      at: condition.entity_type === 'activity' ? Number(row.created_at) : 0,
    };
  const isKnown = (seen: Moment['seen']): seen is Seen | undefined =>
    seen === undefined || (seen.value !== UNKNOWN && seen.live !== UNKNOWN);
  const isSame = (a: Moment['seen'], b: Moment['seen']): boolean =>
    a === b || (a !== undefined && b !== undefined && a.value === b.value && a.live === b.live && a.at === b.at);

  /** The record at the start of the requested period, from earlier events of its stream; undefined: unknown. */
  async function earlier(one: Tracked, budget: { left: number }): Promise<{ seen: Seen | undefined } | undefined> {
    for (let step = FIRST_STEP; ; step *= 2) {
      const most = one.revision ?? Number.POSITIVE_INFINITY;
      const limit = Math.min(step, most, budget.left);
      if (limit === 0 && most > 0) return undefined;
      budget.left -= limit;
      const events: DomainEvent[] = [];
      const from = one.revision === undefined ? {} : { from: one.revision - 1 };
      const options = { direction: 'backwards', ...from, limit } as const;
      for await (const batch of store.log.readStream(one.stream, options))
        for (const logged of batch) events.push(await store.decode(logged));
      const all = events.length === most || events.length < limit;
      let row: AnyRow | undefined = all ? undefined : unknownRow();
      for (const event of events.reverse()) for (const change of changesOf(event)) row = change.apply(row);
      const seen = seenOf(row);
      if (isKnown(seen)) return { seen };
      if (all || budget.left <= 0) return undefined;
    }
  }

  function track(key: string, id: number, stream: string, row: AnyRow | undefined): Tracked {
    const one = { id, stream, revision: undefined, row, moments: [{ from: startAt, seen: seenOf(row) }] };
    tracked.set(key, one);
    return one;
  }

  /** `last_seen` was in fact later: the agent was seen from its first heartbeat of a summary to the last one. */
  function beat({ from, agents }: Summary): void {
    for (const [id, , first, last] of agents) {
      const key = keyText(table, { workspace_id: workspace, id });
      const one = tracked.get(key) ?? track(key, id, `agent-${workspace}-${id}`, unknownRow());
      const seenAgain = (value: unknown) => (typeof value === 'number' ? Math.max(value, from + last) : from + last);
      const later = (seen: Moment['seen']) => seen && ({ ...seen, value: seenAgain(seen.value) } as Moment['seen']);
      if (one.row) one.row = { ...one.row, [field]: seenAgain(one.row[field]) };
      const at = Math.max(startAt, from + first);
      const before = one.moments.filter((moment) => moment.from <= at);
      const after = one.moments.slice(before.length).map((moment) => ({ ...moment, seen: later(moment.seen) }));
      one.moments.splice(0, one.moments.length, ...before, { from: at, seen: later(before.at(-1)?.seen) }, ...after);
    }
  }

  return {
    /** The time of the last event that was applied, Unix seconds. */
    reached: () => clock,
    async apply(logged: LoggedEvent): Promise<void> {
      clock = Math.max(clock, timeOf(logged));
      if (logged.meta.workspace !== workspace) return;
      if (leased && logged.type === heartbeatsReceived.type) beat((await store.decode(logged)).data as Summary);
      if (!projection.handles.has(logged.type)) return;
      for (const change of changesOf(await store.decode(logged))) {
        const key = keyText(table, change.key);
        const row = logged.revision === 0 || change.fresh ? undefined : unknownRow();
        const one = tracked.get(key) ?? track(key, Number(change.key.id), logged.stream, row);
        one.revision ??= logged.revision;
        one.row = change.apply(one.row);
        const seen = seenOf(one.row);
        if (!isSame(seen, one.moments.at(-1)?.seen)) one.moments.push({ from: clock, seen });
      }
    },
    /**
     * Looks up values that the replayed events did not show.
     *
     * @returns the number of records for which that took too long
     */
    async resolve({
      most,
      deadline,
      position,
    }: {
      readonly most: number;
      readonly deadline: number;
      /** Of the start of the requested period. */
      readonly position: number;
    }): Promise<number> {
      const budget = { left: most };
      let unresolved = 0;
      const unknown = [...tracked.values()].filter(({ moments }) => !moments.every(({ seen }) => isKnown(seen)));
      const agents = leased ? unknown.map(({ id }) => id) : [];
      const beats = agents.length > 0 ? await lastBeatsUpTo(reads, workspace, agents, position) : undefined;
      for (const one of unknown) {
        const known = now() < deadline ? await earlier(one, budget) : undefined;
        const beatAt = beats?.get(one.id);
        if (known?.seen && beatAt !== undefined)
          known.seen = { ...known.seen, value: Math.max(Number(known.seen.value ?? 0), beatAt) };
        if (!known) unresolved++;
        one.moments.forEach(({ from, seen }, at) => {
          if (isKnown(seen)) return;
          const was = known?.seen;
          const value = seen?.value === UNKNOWN ? was?.value : seen?.value;
          const live = seen?.live === UNKNOWN ? was?.live : seen?.live;
          one.moments[at] = { from, seen: was && ({ value, live, at: was.at } as Seen) };
        });
      }
      return unresolved;
    },
    /** The periods in which records match. @param times of the unchanged records, if ages are compared */
    presences(times: readonly number[]): readonly Presence[] {
      const found: Presence[] = [];
      const add = (record: string, seen: Seen, from: number, until: number) => {
        const presence = intervalOf(condition, record, seen, from, until);
        if (presence) found.push(presence);
      };
      for (const value of times)
        add(`unchanged since ${value}`, { value, live: true, at: 0 }, 0, Number.POSITIVE_INFINITY);
      for (const [record, { moments }] of tracked) {
        moments.forEach(({ from, seen }, at) => {
          if (seen && isKnown(seen)) add(record, seen, from, moments[at + 1]?.from ?? Number.POSITIVE_INFINITY);
        });
      }
      return found;
    },
  };
}
