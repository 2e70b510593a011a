/**
 * Sums of reported tokens by UTC buckets (see `time-buckets`) and of all time, so that a window of any length is a few
 * thousand rows. Each report counts in four facets: of its agent, of its session, of its task, and of its model; in the
 * last, all agents of the workspace are combined. For time lines, the days of an agent are stored once more, a month in
 * one row.
 *
 * Each report changes some 17 open buckets, which keep no versions (`open-hours.ts`): as of an earlier position, the
 * reports of the buckets that were open then are added up instead (`queries/tokens/usage.ts`).
 */
import { hash } from 'node:crypto';
import { allInput, NANO } from '../../shared/contract/tokens/costs.ts';
import type { EventOf } from '../../shared/events/define.ts';
import type { TokenReport, tokenReportsPurged } from '../../shared/events/tokens/reports.ts';
import { startOf, type Unit } from '../../shared/time-buckets.ts';
import { defineOpenHours, NO_MOMENT, opening } from '../open-hours.ts';
import { type Change, change, defineTable, type RowOf, unversioned, update } from '../projection.ts';

export type Facet = 'agent' | 'session' | 'task' | 'model';

/** The bucket of all time. It starts at 0. */
export const ALL_TIME = 'all';

/**
 * Buckets of time, the finest first. Sessions and tasks have no hours: there would be nearly as many as reports. They
 * are queried for the last 30 days or for all time, for which months would save nothing. Sessions have shifts and
 * pentads instead, because statistics of a day and of a week include all sessions: with shifts, at most four hours of
 * single reports are read, and with pentads, sums of at most three days at the edge of a window.
 */
const BUCKETS = {
  agent: ['hour', 'day', 'dekad', 'month', 'year'],
  session: ['shift', 'day', 'pentad', 'dekad', ALL_TIME],
  task: ['day', 'dekad', ALL_TIME],
  model: ['hour', 'day', 'dekad', ALL_TIME],
} as const satisfies Readonly<Record<Facet, readonly (Unit | typeof ALL_TIME)[]>>;

/** Units from which windows are composed. */
export const FACET_UNITS: Readonly<Record<Facet, readonly Unit[]>> = {
  agent: BUCKETS.agent,
  session: ['shift', 'day', 'pentad', 'dekad'],
  task: ['day', 'dekad'],
  model: ['hour', 'day', 'dekad'],
};

/** The hour of each workspace's newest report. */
export const tokenOpenHoursTable = defineOpenHours();

/** Numbers come before texts: PostgreSQL finds their place in a row without reading the columns before them. */
export const tokenUsageTable = defineTable(
  'usage',
  {
    workspace_id: 'int',
    /** Unix ms; 0 for all time. */
    start: 'bigint',
    requests: 'bigint',
    // Sums of whole numbers. Unlike bigint, the type has no largest value that an update could exceed.
    /** With cached tokens. */
    input_tokens: 'double',
    output_tokens: 'double',
    /** Billionths of a US dollar. */
    cost: 'double',
    /** The part of the cost that was priced by default. */
    estimated: 'double',
    /** 0: no agent of the workspace, or all of them in the facet of models. */
    agent_id: 'bigint',
    /** Time of the newest report, Unix ms. */
    last_at: 'bigint',
    /** Empty, the session, or the id of the task, depending on the facet. */
    subject: 'text',
    /** For reports without an agent's id; otherwise empty, because agents can be renamed. */
    agent_name: 'text',
    /** Empty in the facet of sessions, where it is never queried. */
    model: 'text',
    facet: 'text',
    unit: 'text',
    /** Digest of `subject`, `agent_id`, `agent_name` and `model`, because these texts may be too long for an index. */
    series: 'text',
  },
  {
    key: ['workspace_id', 'facet', 'unit', 'start', 'series'],
    indexes: ['workspace_id, agent_id, facet, unit, start'],
    hasGaps: true,
  },
);

/** The days of agents by month: 100 agents have 36,500 days in a year, and 1,200 months. */
export const tokenDaysTable = defineTable(
  'days',
  {
    workspace_id: 'int',
    /** Unix ms. */
    month: 'bigint',
    /** Digest of the two columns after it. */
    series: 'text',
    /** 0: no agent of the workspace. */
    agent_id: 'bigint',
    /** As in `usage`. */
    agent_name: 'text',
    /** `DaySums` by the day of the month. */
    days: 'jsonb',
  },
  { key: ['workspace_id', 'month', 'series'], hasGaps: true },
);

/** Requests, tokens, and billionths of a US dollar. */
export type DaySums = readonly [requests: number, tokens: number, cost: number];
type Days = Readonly<Record<string, DaySums>>;

/** Usage of one report, or of several that differ only in their amounts. */
type Used = EventOf<typeof tokenReportsPurged>['data']['used'][number];

/** One report as usage. @param at Unix ms */
export function usedBy(at: number, report: Omit<TokenReport, 'price' | 'used_at'> & { readonly price: string }): Used {
  const cost = Math.round(report.cost * NANO);
  return {
    at,
    model: report.model,
    session_id: report.session_id,
    agent_id: report.agent_id,
    agent_name: report.agent_name,
    task_id: report.task_id,
    requests: 1,
    input_tokens: allInput(report),
    output_tokens: report.output_tokens,
    cost,
    estimated: report.price === 'default' ? cost : 0,
  };
}

type Row = RowOf<(typeof tokenUsageTable)['columns']>;
type DaysRow = RowOf<(typeof tokenDaysTable)['columns']>;

const ownerOf = ({ agent_id: agentId, agent_name: agentName }: Used) => ({
  agent_id: agentId ?? 0,
  agent_name: agentId === null ? agentName : '',
});

const NOBODY = { agent_id: 0, agent_name: '' };

const seriesOf = (text: string): string => hash('sha256', text, 'base64url').slice(0, 22);

const startsOf = (at: number): Readonly<Record<Unit | typeof ALL_TIME, number>> => ({
  hour: startOf('hour', at),
  shift: startOf('shift', at),
  day: startOf('day', at),
  pentad: startOf('pentad', at),
  dekad: startOf('dekad', at),
  month: startOf('month', at),
  year: startOf('year', at),
  [ALL_TIME]: 0,
});

/** While sums are added up, rows are changed in place: this runs for every report. */
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

type Amount = 'requests' | 'input_tokens' | 'output_tokens' | 'cost' | 'estimated';

/** Adds the amounts of one row or report to another row. */
function addTo(row: Mutable<Row>, more: Pick<Row, Amount>, at: number): void {
  row.requests += more.requests;
  row.input_tokens += more.input_tokens;
  row.output_tokens += more.output_tokens;
  row.cost += more.cost;
  row.estimated += more.estimated;
  row.last_at = Math.max(row.last_at, at);
}

/**
 * One row for each series and moment, in the bucket of all time. Many reports of a batch share their series, and those
 * of an event their moment, so there are fewer rows to divide into buckets.
 */
function seriesOfMoments(workspace_id: number, used: readonly Used[]): Row[] {
  const rows = new Map<string, Mutable<Row>>();
  for (const one of used) {
    const owner = ownerOf(one);
    const count = (facet: Facet, subject: string, model: string, { agent_id, agent_name } = owner) => {
      const key = `${facet} ${one.at} ${agent_id} ${subject.length} ${subject} ${agent_name.length} ${agent_name} ${model}`;
      const row = rows.get(key);
      if (row) {
        addTo(row, one, one.at);
        return;
      }
      rows.set(key, {
        workspace_id,
        start: 0,
        requests: one.requests,
        input_tokens: one.input_tokens,
        output_tokens: one.output_tokens,
        cost: one.cost,
        estimated: one.estimated,
        agent_id,
        last_at: one.at,
        subject,
        agent_name,
        model,
        facet,
        unit: ALL_TIME,
        series: seriesOf(JSON.stringify({ subject, agent_id, agent_name, model })),
      });
    };
    count('agent', '', one.model);
    count('session', one.session_id, '');
    if (one.task_id !== null) count('task', String(one.task_id), one.model);
    count('model', '', one.model, NOBODY);
  }
  return [...rows.values()];
}

/** One row for each bucket, with the amounts to add to it. */
function bucketsOf(workspace_id: number, used: readonly Used[]): Row[] {
  const rows = new Map<string, Mutable<Row>>();
  let at: number | undefined;
  let starts = startsOf(0);
  for (const one of seriesOfMoments(workspace_id, used)) {
    if (one.last_at !== at) starts = startsOf(one.last_at);
    at = one.last_at;
    for (const unit of BUCKETS[one.facet as Facet]) {
      const start = starts[unit];
      const key = `${one.facet} ${unit} ${start} ${one.series}`;
      const row = rows.get(key);
      if (row) addTo(row, one, at);
      else rows.set(key, { ...one, start, unit });
    }
  }
  return [...rows.values()];
}

const keyOf = ({ workspace_id, facet, unit, start, series }: Row) => ({ workspace_id, facet, unit, start, series });

/** The row with another one added or subtracted. */
const summed = (row: Row, other: Row, sign: 1 | -1): Row => ({
  ...row,
  requests: row.requests + sign * other.requests,
  input_tokens: row.input_tokens + sign * other.input_tokens,
  output_tokens: row.output_tokens + sign * other.output_tokens,
  cost: row.cost + sign * other.cost,
  estimated: row.estimated + sign * other.estimated,
  // Removed reports are older than the remaining ones.
  last_at: sign === 1 ? Math.max(row.last_at, other.last_at) : row.last_at,
});

/** Sums of days with others added or subtracted. Days without reports are dropped. */
function summedDays(days: Days, others: Days, sign: 1 | -1): Days {
  const sums: Record<string, DaySums> = { ...days };
  for (const [day, [requests, tokens, cost]] of Object.entries(others)) {
    const [hadRequests, hadTokens, hadCost] = sums[day] ?? [0, 0, 0];
    if (hadRequests + sign * requests > 0)
      sums[day] = [hadRequests + sign * requests, hadTokens + sign * tokens, hadCost + sign * cost];
    else delete sums[day];
  }
  return sums;
}

/** One row for each month of each agent, with the amounts to add to it. */
function monthsOf(workspace: number, used: readonly Used[]): DaysRow[] {
  const rows = new Map<string, DaysRow>();
  for (const one of used) {
    const agent = ownerOf(one);
    const text = JSON.stringify(agent);
    const month = startOf('month', one.at);
    const key = `${month} ${text}`;
    const row = rows.get(key) ?? { days: {}, workspace_id: workspace, month, series: seriesOf(text), ...agent };
    const day: Days = {
      [new Date(one.at).getUTCDate()]: [one.requests, one.input_tokens + one.output_tokens, one.cost],
    };
    rows.set(key, { ...row, days: summedDays(row.days as Days, day, 1) });
  }
  return [...rows.values()];
}

/** Adds or subtracts sums of days. A month without reports is deleted. */
const daysChanges = (workspace: number, used: readonly Used[], sign: 1 | -1): Change[] =>
  monthsOf(workspace, used).map((other) =>
    unversioned(
      change(tokenDaysTable, { workspace_id: workspace, month: other.month, series: other.series }, (row) => {
        if (!row) return sign === 1 ? other : undefined;
        const days = summedDays(row.days as Days, other.days as Days, sign);
        return Object.keys(days).length > 0 ? { ...row, days } : undefined;
      }),
      // Time lines of the past are read from the buckets.
      () => true,
    ),
  );

/** The open hour after reports, and whether a bucket is open then. @param newest of the reports, Unix ms */
function openingFor(workspace: number, newest: number) {
  const { opened, isOpen } = opening(tokenOpenHoursTable, { workspace_id: workspace }, newest);
  return {
    opened,
    isOpen: ({ unit, start }: Pick<Row, 'unit' | 'start'>) => unit === ALL_TIME || isOpen(unit as Unit, start),
  };
}

/** The reports of one event in all of their buckets. @param at time of the event, Unix ms */
export function usageChanges(workspace: number, at: number, reports: readonly TokenReport[]): Change[] {
  const used = reports.map((report) => usedBy(report.used_at ?? at, report));
  const { opened, isOpen } = openingFor(workspace, Math.max(...used.map((one) => one.at)));
  return [
    opened,
    ...bucketsOf(workspace, used).map((more) =>
      unversioned(
        change(tokenUsageTable, keyOf(more), (row) => (row ? summed(row, more, 1) : more)),
        isOpen,
      ),
    ),
    ...daysChanges(workspace, used, 1),
  ];
}

/** Subtracts the oldest reports. Buckets without reports are deleted. */
export function usageRemoved(workspace: number, used: readonly Used[]): Change[] {
  const { opened, isOpen } = openingFor(workspace, NO_MOMENT);
  return [
    opened,
    ...bucketsOf(workspace, used).map((less) =>
      unversioned(
        update(tokenUsageTable, keyOf(less), (row) =>
          row.requests > less.requests ? summed(row, less, -1) : undefined,
        ),
        isOpen,
      ),
    ),
    ...daysChanges(workspace, used, -1),
  ];
}
