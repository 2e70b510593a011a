/** Leases in memory, for tests without a database. */
import type { AgentPlace, ClosedLease, Leases, LeaseWindow } from '../../shared/ports/agents/leases.ts';

interface Lease {
  tenant: number;
  beats: number;
  first: number;
  last: number;
  connection: string | null;
  connectionAt: number | null;
  window: number | null;
  closed: Pick<ClosedLease, 'beats' | 'first' | 'last'>;
  revoked: boolean;
}

export function leasesMemory() {
  const rows = new Map<string, Lease>();
  let windows = 0;
  const keyOf = ({ workspace, agent }: Pick<AgentPlace, 'workspace' | 'agent'>) => `${workspace} ${agent}`;
  const rowOf = (place: AgentPlace): Lease => {
    const row = rows.get(keyOf(place)) ?? {
      ...{ tenant: place.tenant, beats: 0, first: 0, last: 0, connection: null, connectionAt: null },
      ...{ window: null, closed: { beats: 0, first: 0, last: 0 }, revoked: false },
    };
    rows.set(keyOf(place), row);
    return row;
  };
  const closeRow = (row: Lease) => {
    if (row.beats === 0 || row.window !== null) return false;
    row.window = windows;
    row.closed = { beats: row.beats, first: row.first, last: row.last };
    row.beats = 0;
    return true;
  };
  /** Whether the log has the last heartbeat that named the row's connection. */
  const isSummed = ({ connectionAt, window, closed, beats, first }: Lease) =>
    (connectionAt ?? 0) < (window !== null ? closed.first : beats > 0 ? first : Number.POSITIVE_INFINITY);
  const isIn = (key: string, workspace: number | 'all') => workspace === 'all' || key.startsWith(`${workspace} `);
  const leases: Leases = {
    seesLog: false,
    async renew({ at, connection, ...place }) {
      const row = rowOf(place);
      const isAnother = connection !== null && row.connection !== null && connection !== row.connection;
      if (row.revoked || (isAnother && !isSummed(row))) return false;
      if (row.beats === 0) row.first = at;
      row.beats += 1;
      row.last = Math.max(row.last, at);
      if (connection !== null) Object.assign(row, { connection, connectionAt: at });
      return true;
    },
    async revoke(place, since, connection) {
      const row = rowOf(place);
      const isAlive =
        connection === undefined ? row.last > since : row.connection === connection && (row.connectionAt ?? 0) > since;
      if (isAlive) return undefined;
      row.revoked = true;
      return row.last;
    },
    async grant(place) {
      rowOf(place).revoked = false;
    },
    async close(workspace) {
      windows += 1;
      for (const [key, row] of rows) if (isIn(key, workspace)) closeRow(row);
    },
    async closeOne(place) {
      windows += 1;
      const { tenant, workspace } = place;
      return closeRow(rowOf(place)) ? { tenant, workspace, window: windows } : undefined;
    },
    async closed(workspace) {
      const found = new Map<string, LeaseWindow>();
      for (const [key, { tenant, window }] of rows) {
        const [at] = key.split(' ').map(Number) as [number];
        if (window !== null && isIn(key, workspace)) found.set(`${at} ${window}`, { tenant, workspace: at, window });
      }
      return [...found.values()];
    },
    async leasesOf({ workspace, window }, after, limit) {
      return [...rows]
        .filter(([key, row]) => isIn(key, workspace) && row.window === window)
        .map(([key, { closed, connection, connectionAt }]) => ({
          agent: Number(key.split(' ')[1]),
          ...closed,
          ...((connectionAt ?? -1) >= closed.first
            ? { connection, connectionAt }
            : { connection: null, connectionAt: null }),
        }))
        .sort((one, other) => one.agent - other.agent)
        .filter(({ agent }) => agent > after)
        .slice(0, limit);
    },
    async settle({ workspace, window }) {
      for (const [key, row] of rows) if (isIn(key, workspace) && row.window === window) row.window = null;
    },
  };
  return { ...leases, rows };
}
