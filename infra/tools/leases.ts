/** Heartbeats that are not in the log yet are written to it before the log is copied. */
import { sumUpHeartbeats } from '../../commands/agents/leases.ts';
import { createCommands } from '../../commands/handler.ts';
import { leasesProjection } from '../../projections/agents/leases.ts';
import { schemaOf } from '../../projections/projection.ts';
import { createEventStore } from '../../shared/event-store.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import { pause } from '../../shared/waiting.ts';
import type { Core } from '../core.ts';
import { createPersonKeys } from '../credentials/person-keys.ts';
import { GONE_MS } from '../processes.ts';
import { createLeases } from '../stores/agents/leases.ts';
import { createCounters } from '../stores/counters.ts';

/** How often the read model's position is looked at. */
const LOOK_MS = 50;
/** Reads that began before the append have ended by then, milliseconds. */
const READS_END_MS = 10_000;

/** Waits until the running service shows a position; returns at once when none runs. */
async function shown({ pool }: Core['database'], position: number): Promise<void> {
  for (const start = Date.now(); Date.now() - start < READS_END_MS; await pause(LOOK_MS, undefined, { ref: true })) {
    const { rows } = await pool.query<{ running: boolean; shown: boolean }>(
      `SELECT EXISTS (SELECT FROM service.processes WHERE seen_at > $1) AS running,
         EXISTS (SELECT FROM service.checkpoints WHERE schema_name = $2 AND position >= $3) AS shown`,
      [Date.now() - GONE_MS, schemaOf(leasesProjection), position],
    );
    if (rows[0]?.running !== true || rows[0].shown) return;
  }
}

/** Sums up what the leases of all workspaces hold. */
export async function writeLeases({ database, eventLog }: Pick<Core, 'database' | 'eventLog'>): Promise<void> {
  const counters = createCounters(database.pool);
  const store = createEventStore({ log: eventLog, catalogue, counters, keys: createPersonKeys(database) });
  await sumUpHeartbeats({
    commands: createCommands({ store, counters }),
    leases: createLeases(database.pool),
    readModels: { reach: (_types, { position = 0 }) => shown(database, position) },
  });
}
