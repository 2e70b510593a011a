/** The events that reported the tokens behind a number. */
import { sql } from 'kysely';
import type { Derivation, Derivations } from '../../shared/contract/evidence.ts';
import { derivation, REPORT_TYPES } from '../evidence.ts';
import type { Reads } from '../reads.ts';
import type { Whose } from './owners.ts';
import { type Sql, tokensTable } from './usage.ts';

/** The window, position and limit for the evidence of reports. */
export interface ReportsAsked {
  /** Unix ms. */
  readonly since: number;
  /** When the response was made, Unix ms. */
  readonly now: number;
  /** Position of the newest event that the numbers count. */
  readonly to: number;
  /** Maximum number of listed positions. */
  readonly most: number;
}

/** The reports that a number counts: all with these values. */
export interface ReportFilter {
  readonly model?: string;
  readonly session_id?: string;
  readonly agent_id?: number | null;
  /** Where there is no agent. */
  readonly agent_name?: string;
  /** Null: no task. */
  readonly task_id?: number | null;
  /** Unix ms; not included. */
  readonly until?: number;
  /** Unix ms. */
  readonly since?: number;
}

/** Reports of one owner. */
export const ownedBy = ({ agent_id, agent_name }: Whose): ReportFilter =>
  agent_id === 0 ? { agent_id: null, agent_name } : { agent_id };

/** The fields of a report that filters use. */
export interface ReportRow {
  readonly position: number;
  readonly at: number;
  readonly model: string;
  readonly session_id: string;
  readonly agent_id: number | null;
  readonly agent_name: string;
  readonly task_id: number | null;
}

/** A filter by the tasks of reports, and whether a report matches it. */
export interface TaskFilter {
  readonly filter: NonNullable<Derivation['filter']>;
  readonly counts: (report: ReportRow) => boolean;
}

/** Name of a number, how many reports it counts, and which. */
export type ReportNumber = readonly [name: string, total: number, only: ReportFilter, tasks?: TaskFilter];

const countsFor =
  ({ since = 0, until = Number.POSITIVE_INFINITY, ...same }: ReportFilter, tasks?: TaskFilter) =>
  (row: ReportRow): boolean =>
    row.at >= since &&
    row.at < until &&
    Object.entries(same).every(([name, value]) => row[name as keyof ReportRow] === value) &&
    (tasks?.counts(row) ?? true);

/** The events behind numbers of reports. */
export async function reportDerivations(
  reads: Reads,
  workspace: number,
  { since, now, to, most }: ReportsAsked,
  numbers: readonly ReportNumber[],
): Promise<Derivations> {
  const own = sql`FROM ${tokensTable(reads, 'reports')} WHERE workspace_id = ${workspace} AND at >= ${since}`;
  const { rows } = await sql<ReportRow>`
    SELECT position, at, model, session_id, agent_id, agent_name, task_id ${own} AND position <= ${to}
    LIMIT ${most + 1}`.execute(reads.db);
  // Cleanup may have removed some since the numbers were read.
  const areListed = ([, total, only, tasks]: ReportNumber) =>
    rows.length <= most && rows.filter(countsFor(only, tasks)).length === total;
  const from = numbers.every(areListed) ? 0 : await firstPosition(reads, own);
  return Object.fromEntries(
    numbers.map((number): [string, Derivation] => {
      const [name, total, only, tasks] = number;
      const filter = { ...only, ...tasks?.filter, since: Math.max(since, only.since ?? 0), purged_until: now };
      const events = areListed(number) ? rows : undefined;
      const source = { rule: 'reports', types: REPORT_TYPES, events, from, to } as const;
      return [name, derivation(source, total, filter, countsFor(only, tasks))];
    }),
  );
}

/** All reports are at or after this position. It is not that of the oldest: reports may be late. */
async function firstPosition(reads: Reads, own: Sql): Promise<number> {
  const { rows } = await sql<{ first: number | null }>`
    SELECT min(position) AS first ${own}`.execute(reads.db);
  return rows[0]?.first ?? 0;
}
