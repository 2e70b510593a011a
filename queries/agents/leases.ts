/**
 * What the leases of agents add to the read models: heartbeats that changed nothing. Those of closed windows are in the
 * read model, the others only in the leases. The past shows what the log had by then.
 */
import { type RawBuilder, sql } from 'kysely';
import { settingsProjection } from '../../projections/admin/settings.ts';
import { leasesProjection } from '../../projections/agents/leases.ts';
import type { SettingDefaults } from '../../shared/contract/admin/settings.ts';
import type { Freshness } from '../../shared/ports/read-models.ts';
import { askingTogether } from '../../shared/waiting.ts';
import { settingValues } from '../admin/settings.ts';
import { createLookUps } from '../kept.ts';
import { prepared, type Reads, tableOf } from '../reads.ts';

type Sql<T = unknown> = RawBuilder<T>;

/** Clocks of processes and of the database may differ by this much, seconds. */
const SKEW = 60;

/** Maximum number of agents whose last heartbeats are kept. */
const KEPT = 10_000;

const LEASES = sql.raw('service.leases');
const windowsOf = (reads: Reads): Sql => tableOf(reads, leasesProjection, 'windows');

/** The last heartbeat of row `row` of agents, as far as it changed nothing; NULL: there was none. */
function lastBeat(reads: Reads, row: string): Sql {
  const own = (table: string) =>
    sql.raw(`${table}.workspace_id = ${row}.workspace_id AND ${table}.agent_id = ${row}.id`);
  const summed = sql`(SELECT w.last_at FROM ${windowsOf(reads)} w WHERE ${own('w')} ORDER BY w.window_id DESC LIMIT 1)`;
  return reads.past === undefined
    ? sql`greatest(${summed}, (SELECT nullif(l.last_at, 0) FROM ${LEASES} l WHERE ${own('l')}))`
    : summed;
}

/** When the agent of row `row` of agents was last seen, Unix seconds. */
export const lastSeen = (reads: Reads, row: string): Sql<number | null> =>
  sql`greatest(${sql.ref(`${row}.last_seen`)}, ${lastBeat(reads, row)})`;

/** `lastSeen` as the log had it up to a position. */
export const lastSeenUpTo = (reads: Reads, row: string, position: number): Sql<number | null> =>
  sql`greatest(${sql.ref(`${row}.last_seen`)}, (SELECT w.last_at FROM ${windowsOf(reads)} w
    WHERE w.workspace_id = ${sql.ref(`${row}.workspace_id`)} AND w.agent_id = ${sql.ref(`${row}.id`)}
      AND w.position <= ${position} ORDER BY w.window_id DESC LIMIT 1))`;

/** Whether a summary after a position has heartbeats of row `row` of agents. */
export const beatsAfter = (reads: Reads, row: string, position: number): Sql<boolean> =>
  sql`EXISTS (SELECT FROM ${windowsOf(reads)} w
    WHERE w.workspace_id = ${sql.ref(`${row}.workspace_id`)} AND w.agent_id = ${sql.ref(`${row}.id`)}
      AND w.position > ${position})`;

/** The last heartbeats of agents that changed nothing, as far as the log had them up to a position; Unix seconds. */
export async function lastBeatsUpTo(
  reads: Reads,
  workspace: number,
  agents: readonly number[],
  position: number,
): Promise<ReadonlyMap<number, number>> {
  const { rows } = await sql<{ agent: number; at: number }>`
    SELECT a.agent, b.last_at AS at FROM unnest(${agents}::bigint[]) a (agent), LATERAL (
      SELECT w.last_at FROM ${windowsOf(reads)} w WHERE w.workspace_id = ${workspace} AND w.agent_id = a.agent
        AND w.position <= ${position} ORDER BY w.window_id DESC LIMIT 1) b`.execute(reads.db);
  return new Map(rows.map(({ agent, at }) => [agent, at]));
}

/** The last sign of life of row `row` of agents, Unix seconds. */
export const aliveAt = (reads: Reads, row: string): Sql<number> =>
  sql`greatest(${sql.ref(`${row}.alive_at`)}, ${lastBeat(reads, row)})`;

/** The last heartbeat of row `row` of connections, Unix seconds. */
export const lastHeartbeat = (reads: Reads, row: string): Sql<number> =>
  reads.past === undefined
    ? sql`greatest(${sql.ref(`${row}.last_heartbeat`)}, (SELECT l.connection_at FROM ${LEASES} l
        WHERE l.workspace_id = ${sql.ref(`${row}.workspace_id`)} AND l.agent_id = ${sql.ref(`${row}.agent_id`)}
          AND l.connection_id = ${sql.ref(`${row}.connection_id`)}))`
    : sql.ref(`${row}.last_heartbeat`);

/**
 * Rows `agent_id, beats, last_at` of the heartbeats of a workspace that changed nothing. Those of a window count at the
 * time of its last one. A closed window whose summary the read model has is left out of the leases.
 *
 * @param since Unix seconds
 * @param inLog leaves out what the log does not have yet
 */
export function beatsSince(
  reads: Reads,
  workspace: number,
  since: number,
  { agent, inLog = false }: { readonly agent?: number; readonly inLog?: boolean } = {},
): Sql {
  const whose = agent === undefined ? sql`true` : sql`agent_id = ${agent}`;
  const summed = sql`SELECT agent_id, beats, last_at, position FROM ${windowsOf(reads)}
    WHERE workspace_id = ${workspace} AND ${whose} AND last_at >= ${since}
      ${agent === undefined ? sql`` : sql`AND window_id >= ${since - SKEW}::bigint * 1000000`}`;
  if (inLog || reads.past !== undefined) return summed;
  return sql`${summed}
    UNION ALL SELECT agent_id, beats, last_at, 0::bigint FROM ${LEASES}
      WHERE workspace_id = ${workspace} AND ${whose} AND beats > 0 AND last_at >= ${since}
    UNION ALL SELECT agent_id, closed_beats, closed_last, 0::bigint FROM ${LEASES} l
      WHERE workspace_id = ${workspace} AND ${whose} AND window_id IS NOT NULL AND closed_last >= ${since}
        AND NOT EXISTS (SELECT FROM ${windowsOf(reads)} w
          WHERE w.workspace_id = l.workspace_id AND w.agent_id = l.agent_id AND w.window_id = l.window_id)`;
}

/** How many heartbeats that changed nothing an agent has sent since a moment. @param since Unix seconds */
export const beatCount = (reads: Reads, workspace: number, agent: number, since: number): Sql<number> =>
  sql`(SELECT coalesce(sum(beats), 0)::bigint FROM (${beatsSince(reads, workspace, since, { agent })}) b)`;

/** When an agent sent its last heartbeat that changed nothing, Unix seconds; null: never. */
export type LastBeatOf = (workspace: number, agent: number) => Promise<number | null>;

/**
 * Last heartbeats for the responses of writes, which do not wait for them. Concurrent callers share one query, and none
 * is sent while the workspace has no new heartbeats.
 */
export function createLastBeats(reads: Reads, freshness: Pick<Freshness, 'stamp'>): LastBeatOf {
  const there = reads.at({});
  const ask = askingTogether(async (agents: readonly (readonly [workspace: number, agent: number])[]) => {
    const workspaces = agents.map(([workspace]) => workspace);
    const ids = agents.map(([, agent]) => agent);
    const { rows } = await sql<{ agent: string; at: number }>`${prepared}
      SELECT a.workspace_id || ' ' || a.id AS agent, ${lastBeat(there, 'a')} AS at
      FROM unnest(${workspaces}::int[], ${ids}::bigint[]) a (workspace_id, id)`.execute(there.db);
    return new Map(rows.map(({ agent, at }) => [agent, at]));
  });
  const lookUps = createLookUps<number | null>({
    reads,
    freshness,
    models: [leasesProjection.name],
    scope: 'workspace',
    values: KEPT,
  });
  return async (workspace, agent) => {
    const lookUp = await lookUps(workspace, {});
    return lookUp(String(agent), async () => (await ask([[workspace, agent]])).get(`${workspace} ${agent}`) ?? null);
  };
}

/**
 * Old summaries of the next agent of a workspace after `after`, without its newest one, which says when it was last seen.
 *
 * @param before Unix seconds
 * @returns undefined when there is no further agent
 */
export async function oldSummaries(
  reads: Reads,
  workspace: number,
  { before, after, limit }: { readonly before: number; readonly after: number; readonly limit: number },
): Promise<{ readonly agent: number; readonly windows: readonly number[] } | undefined> {
  const of = (agent: Sql) => sql`${windowsOf(reads)} w WHERE w.workspace_id = ${workspace} AND w.agent_id ${agent}`;
  const { rows } = await sql<{ agent: number; windows: number[] | null }>`
    SELECT n.agent, (SELECT json_agg(window_id) FROM (
      SELECT window_id FROM ${of(sql`= n.agent`)} AND window_id < least(${before}::bigint * 1000000,
        (SELECT max(window_id) FROM ${of(sql`= n.agent`)})) ORDER BY window_id LIMIT ${limit}) old) AS windows
    FROM (SELECT min(agent_id) AS agent FROM ${of(sql`> ${after}`)}) n WHERE n.agent IS NOT NULL`.execute(reads.db);
  return rows[0] && { agent: rows[0].agent, windows: rows[0].windows ?? [] };
}

/** Whether every heartbeat is an event (`general.heartbeat_events`), as of `since` (`performance.now()`) or later. */
export type EachIsEvent = (since: number) => Promise<boolean>;

export function eachIsEvent(reads: Reads, freshness: Pick<Freshness, 'stamp'>, defaults: SettingDefaults): EachIsEvent {
  const name = 'general.heartbeat_events';
  const lookUps = createLookUps<Readonly<Record<typeof name, string>>>({
    reads,
    freshness,
    models: [settingsProjection.name],
    scope: 'all',
    values: 1,
  });
  return async (since) => {
    const lookUp = await lookUps(0, { since });
    const found = await lookUp(name, (there) => settingValues(there, defaults, [name]));
    return found[name] === 'all';
  };
}
