/** The events that reported the tokens behind a number. */
import { sql } from 'kysely';
import type { Derivation, Derivations } from '../../shared/contract/evidence.ts';
import { derivation, REPORT_TYPES } from '../evidence.ts';
import type { Reads } from '../reads.ts';
import type { Whose } from './owners.ts';
import { type Sql, tokensTable } from './usage.ts';

/** What an evidence of reports is about. */
export interface ReportsAsked {
  /** Unix ms. */
  readonly since: number;
  /** When the response was made, Unix ms. */
  readonly now: number;
  /** Position of the newest event that the numbers count. */
  readonly to: number;
  /** How many positions are listed. */
  readonly most: number;
}

/** Which reports a number counts: all of those that have this. */
export interface ReportFilter {
  readonly model?: string;
  readonly session_id?: string;
  readonly agent_id?: number | null;
  /** Where there is no agent. */
  readonly agent_name?: string;
  /** Unix ms; not included. */
  readonly until?: number;
  /** Unix ms. */
  readonly since?: number;
}

/** Reports of one owner. */
export const ownedBy = ({ agent_id, agent_name }: Whose): ReportFilter =>
  agent_id === 0 ? { agent_id: null, agent_name } : { agent_id };

interface ReportRow {
  readonly position: number;
  readonly at: number;
  readonly model: string;
  readonly session_id: string;
  readonly agent_id: number | null;
  readonly agent_name: string;
}

const countsFor =
  ({ since = 0, until = Number.POSITIVE_INFINITY, ...same }: ReportFilter) =>
  (row: ReportRow): boolean =>
    row.at >= since &&
    row.at < until &&
    Object.entries(same).every(([name, value]) => row[name as keyof ReportRow] === value);

/**
 * The events behind numbers of reports.
 *
 * @param requests how many reports there are in all
 * @param numbers by name: how many reports each counts, and which
 */
export async function reportDerivations(
  reads: Reads,
  workspace: number,
  { since, now, to, most }: ReportsAsked,
  requests: number,
  numbers: readonly (readonly [name: string, total: number, only: ReportFilter])[],
): Promise<Derivations> {
  const own = sql`FROM ${tokensTable(reads, 'reports')} WHERE workspace_id = ${workspace} AND at >= ${since}`;
  const few = requests <= most;
  const { rows } = few
    ? await sql<ReportRow>`
        SELECT position, at, model, session_id, agent_id, agent_name ${own} AND position <= ${to}
        LIMIT ${most + 1}`.execute(reads.db)
    : { rows: [] };
  // Cleanup may have removed some since.
  const events = few && rows.length === requests ? rows : undefined;
  const from = events ? 0 : await firstPosition(reads, own);
  const source = { rule: 'reports', types: REPORT_TYPES, events, from, to } as const;
  return Object.fromEntries(
    numbers.map(([name, total, only]): [string, Derivation] => {
      const filter = { ...only, since: Math.max(since, only.since ?? 0), purged_until: now };
      return [name, derivation(source, total, filter, countsFor(only))];
    }),
  );
}

/** Clocks of processes may differ by so much, milliseconds. */
const SKEW_MS = 60_000;

/** No report is before this position. */
async function firstPosition(reads: Reads, own: Sql): Promise<number> {
  const { rows } = await sql<{ first: number | null }>`
    SELECT min(position) AS first ${own} AND at <= (SELECT min(at) ${own}) + ${SKEW_MS}::bigint`.execute(reads.db);
  return rows[0]?.first ?? 0;
}
