/**
 * Leases of agents in PostgreSQL. Heartbeats that arrive within some milliseconds, or while a statement is in flight,
 * share a statement and its flush. Rows are updated in place: no index covers what changes, and pages have room for new
 * versions, so pruning keeps the table small without a vacuum.
 */
import { randomInt } from 'node:crypto';
import type pg from 'pg';
import type { Beat, ClosedLease, Leases, LeaseWindow } from '../../../shared/ports/agents/leases.ts';
import { askingTogether, awaitingOthers } from '../../../shared/waiting.ts';

/** Rows of `service.lease_moves`: processes share them, so that their statements rarely wait for each other. */
const SLOTS = 16;
/** A row without heartbeats, or revoked, for this long is removed, seconds; the read model has its last one. */
const KEPT = 86_400;

/** How long a heartbeat waits for others to share its statement, milliseconds, and how many of them end the wait. */
const GATHER_MS = 20;
const GATHERED = 16;

/**
 * Whether the log has the last heartbeat that named the connection of row `l`, and every read shows it. Only then another
 * connection takes its place: meanwhile the heartbeats of the new one are events.
 */
const CONNECTION_SUMMED = `l.connection_at <
  CASE WHEN l.window_id IS NOT NULL THEN l.closed_first WHEN l.beats > 0 THEN l.first_at ELSE 'infinity'::float8 END`;

/** Adds the heartbeats of a turn. Every statement takes its rows in the order of the key, so that none can deadlock. */
const RENEW = `WITH moved AS (UPDATE service.lease_moves SET moves = moves + 1 WHERE slot = $8)
  INSERT INTO service.leases AS l
    (workspace_id, agent_id, tenant_id, beats, first_at, last_at, connection_id, connection_at)
  SELECT workspace, agent, tenant, beats, first, last, connection, named
  FROM unnest($1::int[], $2::bigint[], $3::int[], $4::int[], $5::bigint[], $6::bigint[], $7::text[], $9::text[],
      $10::int[], $11::bigint[])
    AS beat (workspace, agent, tenant, beats, first, last, connection, stream, revision, named)
  WHERE stream IS NULL OR revision = (SELECT max(e.revision) FROM log.events e WHERE e.stream = beat.stream)
  ORDER BY workspace, agent
  ON CONFLICT (workspace_id, agent_id) DO UPDATE SET
    beats = l.beats + excluded.beats,
    first_at = CASE WHEN l.beats = 0 THEN excluded.first_at ELSE least(l.first_at, excluded.first_at) END,
    last_at = greatest(l.last_at, excluded.last_at),
    connection_id = coalesce(excluded.connection_id, l.connection_id),
    connection_at = CASE WHEN excluded.connection_id <> l.connection_id THEN excluded.connection_at
      ELSE greatest(l.connection_at, excluded.connection_at) END
  WHERE l.revoked_at IS NULL
    AND (excluded.connection_id IS NULL OR l.connection_id IS NULL OR excluded.connection_id = l.connection_id
      OR ${CONNECTION_SUMMED})
  RETURNING workspace_id AS workspace, agent_id AS agent`;

const NOW = 'extract(epoch FROM clock_timestamp())';

const REVOKE = `INSERT INTO service.leases AS l (workspace_id, agent_id, tenant_id, revoked_at) VALUES ($1, $2, $3, ${NOW})
  ON CONFLICT (workspace_id, agent_id) DO UPDATE SET revoked_at = excluded.revoked_at
  WHERE CASE WHEN $5::text IS NULL THEN l.last_at <= $4::bigint
    ELSE l.connection_id IS DISTINCT FROM $5 OR l.connection_at <= $4::bigint END
  RETURNING last_at`;

/** A window is named by the time at which it was closed, Unix microseconds: no other of the workspace has that name. */
const CLOSE = `WITH rows AS (
    SELECT workspace_id, agent_id FROM service.leases
    WHERE ($1::int IS NULL OR workspace_id = $1) AND ($2::bigint IS NULL OR agent_id = $2)
      AND beats > 0 AND window_id IS NULL
    ORDER BY workspace_id, agent_id FOR UPDATE
  ), name AS (SELECT (${NOW} * 1000000)::bigint AS window_id)
  UPDATE service.leases l SET window_id = name.window_id, closed_beats = l.beats, closed_first = l.first_at,
    closed_last = l.last_at, beats = 0
  FROM rows, name
  WHERE l.workspace_id = rows.workspace_id AND l.agent_id = rows.agent_id AND l.beats > 0 AND l.window_id IS NULL
  RETURNING l.window_id AS window`;

const CLOSED = `SELECT DISTINCT workspace_id AS workspace, tenant_id AS tenant, window_id AS window FROM service.leases
  WHERE window_id IS NOT NULL AND ($1::int IS NULL OR workspace_id = $1) ORDER BY window_id, workspace_id`;

const LEASES_OF = `SELECT agent_id AS agent, closed_beats AS beats, closed_first AS first, closed_last AS last,
    CASE WHEN connection_at >= closed_first THEN connection_id END AS connection,
    CASE WHEN connection_at >= closed_first THEN connection_at END AS "connectionAt"
  FROM service.leases WHERE workspace_id = $1 AND window_id = $2 AND agent_id > $3 ORDER BY agent_id LIMIT $4`;

const SETTLE = `WITH rows AS (
    SELECT workspace_id, agent_id FROM service.leases WHERE workspace_id = $1 AND window_id = $2
    ORDER BY workspace_id, agent_id FOR UPDATE
  )
  UPDATE service.leases l SET window_id = NULL, closed_beats = 0
  FROM rows WHERE l.workspace_id = rows.workspace_id AND l.agent_id = rows.agent_id`;

const IS_OLD = `beats = 0 AND window_id IS NULL AND greatest(last_at, revoked_at) < ${NOW} - $2`;
/** Leaves out rows that are in use. */
const REMOVE_OLD = `DELETE FROM service.leases WHERE workspace_id = $1 AND ${IS_OLD} AND agent_id = ANY (ARRAY(
    SELECT agent_id FROM service.leases WHERE workspace_id = $1 AND ${IS_OLD} FOR UPDATE SKIP LOCKED))`;

const keyOf = ({ workspace, agent }: { readonly workspace: number; readonly agent: number }) => `${workspace} ${agent}`;

/** The heartbeats of an agent in one row of a statement. */
interface Row {
  readonly beats: Set<Beat>;
  readonly first: Beat;
  connection: string | null;
}

/** Whether a row can count a heartbeat, too: decided on the same state of the agent's stream, and with no other connection. */
const fits = ({ first, connection }: Row, beat: Beat): boolean =>
  first.unlessMoved?.revision === beat.unlessMoved?.revision &&
  (connection === null || beat.connection === null || connection === beat.connection);

/** The heartbeats of each agent as one. What does not fit to its first one is left out. */
function rowsOf(beats: readonly Beat[]): ReadonlyMap<string, Row> {
  const rows = new Map<string, Row>();
  for (const beat of beats) {
    const key = keyOf(beat);
    const row = rows.get(key);
    if (!row) rows.set(key, { beats: new Set([beat]), first: beat, connection: beat.connection });
    else if (fits(row, beat)) {
      row.beats.add(beat);
      row.connection ??= beat.connection;
    }
  }
  return rows;
}

const timesOf = ({ beats }: Row): number[] => [...beats].map(({ at }) => at);

/** When the connection of a row was named last; null: it has none. */
function namedAt({ beats, connection }: Row): number | null {
  if (connection === null) return null;
  return Math.max(...[...beats].filter((beat) => beat.connection !== null).map(({ at }) => at));
}

/** `moves`: a value that changes whenever this process renews a lease in the workspace. */
export interface OpenLeases extends Leases {
  moves(workspace: number | 'all'): number;
}

/** Maximum number of workspaces whose renewals are counted separately. */
const COUNTED = 10_000;

export interface LeasesOptions {
  /** The log is in the same database. */
  readonly seesLog?: boolean;
  /** Each connection prepares the statement of heartbeats: see `PREPARED`. */
  readonly prepared?: boolean;
}

export function createLeases(
  pool: Pick<pg.Pool, 'query'>,
  { seesLog = false, prepared = false }: LeasesOptions = {},
): OpenLeases {
  const slot = randomInt(SLOTS);
  const moves = new Map<number, number>();
  let all = 0;
  /** What workspaces without a count of their own have moved to. */
  let floor = 0;
  const moved = (workspace: number) => {
    all += 1;
    if (moves.size >= COUNTED) {
      moves.clear();
      floor = all;
    }
    moves.set(workspace, all);
  };

  /** What became of a heartbeat; undefined: it was left out, for the next statement. */
  const renewAll = askingTogether<Beat, (beat: Beat) => boolean | undefined>(async (beats) => {
    const byKey = rowsOf(beats);
    const rows = [...byKey.values()];
    const values = [
      rows.map(({ first }) => first.workspace),
      rows.map(({ first }) => first.agent),
      rows.map(({ first }) => first.tenant),
      rows.map((row) => row.beats.size),
      rows.map((row) => Math.min(...timesOf(row))),
      rows.map((row) => Math.max(...timesOf(row))),
      rows.map(({ connection }) => connection),
      slot,
      rows.map(({ first }) => first.unlessMoved?.stream ?? null),
      rows.map(({ first }) => first.unlessMoved?.revision ?? null),
      rows.map(namedAt),
    ];
    const { rows: renewed } = await pool.query<{ workspace: number; agent: number }>({
      ...(prepared && { name: 'renew_leases' }),
      text: RENEW,
      values,
    });
    const counted = new Set<string>();
    for (const place of renewed) {
      moved(place.workspace);
      counted.add(keyOf(place));
    }
    return (beat) => {
      const key = keyOf(beat);
      return byKey.get(key)?.beats.has(beat) ? counted.has(key) : undefined;
    };
  });

  const others = awaitingOthers(GATHER_MS, GATHERED);

  async function renew(beat: Beat): Promise<boolean> {
    await others();
    for (;;) {
      const outcome = (await renewAll([beat]))(beat);
      if (outcome !== undefined) return outcome;
    }
  }

  return {
    moves: (workspace) => (workspace === 'all' ? all : (moves.get(workspace) ?? floor)),
    seesLog,
    renew,
    async revoke({ workspace, agent, tenant }, since, connection) {
      const { rows } = await pool.query<{ last_at: number }>(REVOKE, [
        workspace,
        agent,
        tenant,
        since,
        connection ?? null,
      ]);
      return rows[0]?.last_at;
    },
    async grant({ workspace, agent }) {
      await pool.query('UPDATE service.leases SET revoked_at = NULL WHERE workspace_id = $1 AND agent_id = $2', [
        workspace,
        agent,
      ]);
    },
    async close(workspace) {
      await pool.query(CLOSE, [workspace === 'all' ? null : workspace, null]);
    },
    async closeOne({ tenant, workspace, agent }) {
      const { rows } = await pool.query<Pick<LeaseWindow, 'window'>>(CLOSE, [workspace, agent]);
      return rows[0] && { tenant, workspace, window: rows[0].window };
    },
    async closed(workspace) {
      const { rows } = await pool.query<LeaseWindow>(CLOSED, [workspace === 'all' ? null : workspace]);
      return rows;
    },
    async leasesOf({ workspace, window }, after, limit) {
      const { rows } = await pool.query<ClosedLease>(LEASES_OF, [workspace, window, after, limit]);
      return rows;
    },
    async settle({ workspace, window }) {
      await pool.query(SETTLE, [workspace, window]);
      await pool.query(REMOVE_OLD, [workspace, KEPT]);
    },
  };
}
