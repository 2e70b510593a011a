/**
 * Sums of reported tokens by hour, day, dekad, month and year (UTC) and of all time, so that a window of any length is a
 * few thousand rows. Each report counts in four facets: of its agent, of its session, of its task, and of its workspace.
 * The days of an agent are kept once more, a month in one row, for time lines.
 */
import { hash } from 'node:crypto';
import type { TokenReport } from '../../shared/events/tokens/reports.ts';
import { startOf, UNITS, type Unit } from '../../shared/time-buckets.ts';
import { NANO } from '../../shared/token-prices.ts';
import { type Change, change, defineTable, type RowOf, update } from '../projection.ts';

export type Facet = 'agent' | 'session' | 'task' | 'workspace';

/** The bucket of all time. It starts at 0. */
export const ALL_TIME = 'all';

/**
 * Buckets of time, the finest first. Sessions and tasks have no hours: there would be nearly as many as reports. They are
 * asked for the last 30 days or for all time, which months would not make shorter. Workspaces are asked for hours, and for
 * the last 30 days, which are 720 of them.
 */
const BUCKETS = {
  agent: UNITS,
  session: ['day', 'dekad', ALL_TIME],
  task: ['day', 'dekad', ALL_TIME],
  workspace: ['hour'],
} as const satisfies Readonly<Record<Facet, readonly (Unit | typeof ALL_TIME)[]>>;

/** Those that windows are made of. */
export const FACET_UNITS: Readonly<Record<Facet, readonly Unit[]>> = {
  agent: BUCKETS.agent,
  session: ['day', 'dekad'],
  task: ['day', 'dekad'],
  workspace: BUCKETS.workspace,
};

export const tokenUsageTable = defineTable(
  'usage',
  {
    workspace_id: 'int',
    facet: 'text',
    unit: 'text',
    /** Unix ms; 0 for all time. */
    start: 'bigint',
    /** Digest of the four columns after it, whose texts may be too long for an index. */
    series: 'text',
    /** Empty, the session, or the id of the task, by facet. */
    subject: 'text',
    /** 0: no agent of the workspace, or all of them in the facet of workspaces. */
    agent_id: 'bigint',
    /** Of reports without an agent's id; empty where there is one, because agents can be renamed. */
    agent_name: 'text',
    /** Empty in the facets of sessions and workspaces, where nobody asks for it. */
    model: 'text',
    requests: 'bigint',
    // Sums of whole numbers. Unlike bigint, the type has no largest value that an update could exceed.
    input_tokens: 'double',
    output_tokens: 'double',
    /** Billionths of a US dollar. */
    cost: 'double',
    /** Time of the newest report, Unix ms. */
    last_at: 'bigint',
  },
  {
    key: ['workspace_id', 'facet', 'unit', 'start', 'series'],
    indexes: ['workspace_id, agent_id, facet, unit, start'],
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
  { key: ['workspace_id', 'month', 'series'] },
);

/** Requests, tokens, and billionths of a US dollar. */
export type DaySums = readonly [requests: number, tokens: number, cost: number];
type Days = Readonly<Record<string, DaySums>>;

/** What was used by one report, or by several that have everything but their amounts in common. */
export interface Used {
  /** Unix ms. */
  readonly at: number;
  readonly model: string;
  readonly sessionId: string;
  readonly agentId: number | null;
  readonly agentName: string;
  readonly taskId: number | null;
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Billionths of a US dollar. */
  readonly cost: number;
}

/** One report, as it is used. @param at Unix ms */
export const usedBy = (at: number, report: TokenReport): Used => ({
  at,
  model: report.model,
  sessionId: report.sessionId,
  agentId: report.agentId,
  agentName: report.agentName,
  taskId: report.taskId,
  requests: 1,
  inputTokens: report.inputTokens,
  outputTokens: report.outputTokens,
  cost: Math.round(report.cost * NANO),
});

type Row = RowOf<(typeof tokenUsageTable)['columns']>;
type DaysRow = RowOf<(typeof tokenDaysTable)['columns']>;

const ownerOf = ({ agentId, agentName }: Used) => ({
  agent_id: agentId ?? 0,
  agent_name: agentId === null ? agentName : '',
});

const NOBODY = { agent_id: 0, agent_name: '' };

const seriesOf = (text: string): string => hash('sha256', text, 'base64url').slice(0, 22);

const startsOf = (at: number): Readonly<Record<Unit | typeof ALL_TIME, number>> => ({
  hour: startOf('hour', at),
  day: startOf('day', at),
  dekad: startOf('dekad', at),
  month: startOf('month', at),
  year: startOf('year', at),
  [ALL_TIME]: 0,
});

/** While sums are added up, rows are changed in place: this runs for every report. */
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** One row for each bucket, with what is to be added to it. */
function bucketsOf(workspace_id: number, used: readonly Used[]): Row[] {
  const rows = new Map<string, Mutable<Row>>();
  const digests = new Map<string, string>();
  const digestOf = (text: string): string => {
    const series = digests.get(text) ?? seriesOf(text);
    digests.set(text, series);
    return series;
  };
  let at: number | undefined;
  let starts = startsOf(0);
  for (const one of used) {
    // Reports of one event are of one moment.
    if (one.at !== at) starts = startsOf(one.at);
    at = one.at;
    const owner = ownerOf(one);
    const count = (facet: Facet, subject: string, model: string, whose = owner) => {
      const { agent_id, agent_name } = whose;
      const series = digestOf(JSON.stringify({ subject, agent_id, agent_name, model }));
      for (const unit of BUCKETS[facet]) {
        const start = starts[unit];
        const key = `${facet} ${unit} ${start} ${series}`;
        const row = rows.get(key);
        if (row) {
          row.requests += one.requests;
          row.input_tokens += one.inputTokens;
          row.output_tokens += one.outputTokens;
          row.cost += one.cost;
          row.last_at = Math.max(row.last_at, one.at);
        } else {
          rows.set(key, {
            workspace_id,
            facet,
            unit,
            start,
            series,
            subject,
            agent_id,
            agent_name,
            model,
            requests: one.requests,
            input_tokens: one.inputTokens,
            output_tokens: one.outputTokens,
            cost: one.cost,
            last_at: one.at,
          });
        }
      }
    };
    count('agent', '', one.model);
    count('session', one.sessionId, '');
    if (one.taskId !== null) count('task', String(one.taskId), one.model);
    count('workspace', '', '', NOBODY);
  }
  return [...rows.values()];
}

const keyOf = ({ workspace_id, facet, unit, start, series }: Row) => ({ workspace_id, facet, unit, start, series });

/** The row with another one added to it, or taken from it. */
const summed = (row: Row, other: Row, sign: 1 | -1): Row => ({
  ...row,
  requests: row.requests + sign * other.requests,
  input_tokens: row.input_tokens + sign * other.input_tokens,
  output_tokens: row.output_tokens + sign * other.output_tokens,
  cost: row.cost + sign * other.cost,
  // What is taken away is older than what stays.
  last_at: sign === 1 ? Math.max(row.last_at, other.last_at) : row.last_at,
});

/** Sums of days with others added to them, or taken from them. Days without any reports are gone. */
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

/** One row for each month of each agent, with what is to be added to it. */
function monthsOf(workspace: number, used: readonly Used[]): DaysRow[] {
  const rows = new Map<string, DaysRow>();
  for (const one of used) {
    const agent = ownerOf(one);
    const text = JSON.stringify(agent);
    const month = startOf('month', one.at);
    const key = `${month} ${text}`;
    const row = rows.get(key) ?? { days: {}, workspace_id: workspace, month, series: seriesOf(text), ...agent };
    const day: Days = {
      [new Date(one.at).getUTCDate()]: [one.requests, one.inputTokens + one.outputTokens, one.cost],
    };
    rows.set(key, { ...row, days: summedDays(row.days as Days, day, 1) });
  }
  return [...rows.values()];
}

/** Adds sums of days, or takes them away. A month without any is gone. */
const daysChanges = (workspace: number, used: readonly Used[], sign: 1 | -1): Change[] =>
  monthsOf(workspace, used).map((other) =>
    change(tokenDaysTable, { workspace_id: workspace, month: other.month, series: other.series }, (row) => {
      if (!row) return sign === 1 ? other : undefined;
      const days = summedDays(row.days as Days, other.days as Days, sign);
      return Object.keys(days).length > 0 ? { ...row, days } : undefined;
    }),
  );

/** The reports of one event in all of their buckets. @param at Unix ms */
export function usageChanges(workspace: number, at: number, reports: readonly TokenReport[]): Change[] {
  const used = reports.map((report) => usedBy(at, report));
  return [
    ...bucketsOf(workspace, used).map((more) =>
      change(tokenUsageTable, keyOf(more), (row) => (row ? summed(row, more, 1) : more)),
    ),
    ...daysChanges(workspace, used, 1),
  ];
}

/** The oldest reports no longer count. Buckets without any are gone. */
export const usageRemoved = (workspace: number, used: readonly Used[]): Change[] => [
  ...bucketsOf(workspace, used).map((less) =>
    update(tokenUsageTable, keyOf(less), (row) => (row.requests > less.requests ? summed(row, less, -1) : undefined)),
  ),
  ...daysChanges(workspace, used, -1),
];
