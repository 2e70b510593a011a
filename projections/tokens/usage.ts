/**
 * Sums of reported tokens by hour, day and month (UTC) and of all time, so that a window of any length is a few thousand
 * rows. Each report counts in three facets: of its agent, of its session, and of its task.
 */
import { hash } from 'node:crypto';
import type { TokenReport } from '../../shared/events/tokens/reports.ts';
import { startOf, UNITS, type Unit } from '../../shared/time-buckets.ts';
import { NANO } from '../../shared/token-prices.ts';
import { type Change, change, defineTable, type RowOf, update } from '../projection.ts';

export type Facet = 'agent' | 'session' | 'task';

/** Buckets of time. Sessions and tasks have no hours: there would be nearly as many as reports. */
export const FACET_UNITS: Readonly<Record<Facet, readonly Unit[]>> = {
  agent: UNITS,
  session: ['day', 'month'],
  task: ['day', 'month'],
};

/** The bucket of all time, which every facet has. It starts at 0. */
export const ALL_TIME = 'all';

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
    /** 0: no agent of the workspace. */
    agent_id: 'bigint',
    /** Of reports without an agent's id; empty where there is one, because agents can be renamed. */
    agent_name: 'text',
    /** Empty in the facet of sessions, where nobody asks for it. */
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
  ...report,
  at,
  requests: 1,
  cost: Math.round(report.cost * NANO),
});

type Row = RowOf<(typeof tokenUsageTable)['columns']>;

/** One row for each bucket, with what is to be added to it. */
function bucketsOf(workspace: number, used: readonly Used[]): Row[] {
  const rows = new Map<string, Row>();
  const digests = new Map<string, string>();
  for (const { at, model, sessionId, agentId, agentName, taskId, requests, inputTokens, outputTokens, cost } of used) {
    const agent = { agent_id: agentId ?? 0, agent_name: agentId === null ? agentName : '' };
    const facets: [Facet, Pick<Row, 'subject' | 'agent_id' | 'agent_name' | 'model'>][] = [
      ['agent', { subject: '', ...agent, model }],
      ['session', { subject: sessionId, ...agent, model: '' }],
    ];
    if (taskId !== null) facets.push(['task', { subject: String(taskId), ...agent, model }]);
    for (const [facet, whose] of facets) {
      const text = JSON.stringify(whose);
      const series = digests.get(text) ?? hash('sha256', text, 'base64url').slice(0, 22);
      digests.set(text, series);
      for (const unit of [...FACET_UNITS[facet], ALL_TIME] as const) {
        const start = unit === ALL_TIME ? 0 : startOf(unit, at);
        const key = `${facet} ${unit} ${start} ${series}`;
        const row = rows.get(key);
        rows.set(key, {
          workspace_id: workspace,
          facet,
          unit,
          start,
          series,
          ...whose,
          requests: (row?.requests ?? 0) + requests,
          input_tokens: (row?.input_tokens ?? 0) + inputTokens,
          output_tokens: (row?.output_tokens ?? 0) + outputTokens,
          cost: (row?.cost ?? 0) + cost,
          last_at: Math.max(row?.last_at ?? 0, at),
        });
      }
    }
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

/** The reports of one event in all of their buckets. @param at Unix ms */
export const usageChanges = (workspace: number, at: number, reports: readonly TokenReport[]): Change[] =>
  bucketsOf(
    workspace,
    reports.map((report) => usedBy(at, report)),
  ).map((more) => change(tokenUsageTable, keyOf(more), (row) => (row ? summed(row, more, 1) : more)));

/** The oldest reports no longer count. Buckets without any are gone. */
export const usageRemoved = (workspace: number, used: readonly Used[]): Change[] =>
  bucketsOf(workspace, used).map((less) =>
    update(tokenUsageTable, keyOf(less), (row) => (row.requests > less.requests ? summed(row, less, -1) : undefined)),
  );
