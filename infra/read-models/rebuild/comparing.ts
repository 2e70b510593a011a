/**
 * Compares a rebuilt read model with the live one at the same position.
 *
 * On a server, the live tables are read in a snapshot, which blocks nothing. PGlite has a single session and no such
 * snapshot, so rows that the live read model changes in the meantime make a table differ; a table that differs is
 * compared again under the lock. In both cases, changes since the comparison are compared under the lock of the live
 * checkpoint.
 */
import { sql } from 'kysely';
import type { Table } from '../../../projections/projection.ts';
import type { Position } from '../../../shared/ports/event-log.ts';
import type { AnyDatabase } from '../../database/database.ts';
import { type Fingerprint, hashChanges, hashTable } from '../tables.ts';
import type { Building } from './building.ts';
import { openBulkSession } from './bulk.ts';

/** Number of 8 kB blocks hashed per statement on the embedded database, which takes about a tenth of a second. */
const HASH_BLOCKS = 1_000;

/** The contents of a table in both read models, at the same position. */
interface Compared {
  at: Position;
  /** Undefined if it could not be read. */
  live: Fingerprint | undefined;
  rebuilt: Fingerprint;
  /** False: the live rows may have changed while they were being read. */
  certain: boolean;
}

/** By table. */
export type Comparison = Map<string, Compared>;

/** Undefined when the live tables are behind the rebuilt ones, because there is then no common position. */
export async function compare(built: Building): Promise<Comparison | undefined> {
  const { stores, sessions } = built.build;
  const tables: Comparison = new Map();
  if (stores.database.kind === 'embedded') {
    await built.catchUp();
    const at = built.position;
    if ((await built.liveCheckpoint()).position < at) return undefined;
    const options = { blocks: HASH_BLOCKS };
    for (const table of built.projection.tables) {
      const rebuilt = await sessions.use(({ db }) => hashTable(db, built.schema, table, options));
      const live = await sessions.use(({ db }) =>
        readable(() => hashTable(db, built.live, table, { ...options, upTo: at })),
      );
      tables.set(table.name, { at, live, rebuilt, certain: live === undefined || live.hash === rebuilt.hash });
    }
    return tables;
  }
  const snapshot = await openBulkSession(stores.database, stores.config.dataDir, 'rebuild: comparing');
  try {
    for (const table of built.projection.tables) {
      const compared = await snapshot.db
        .transaction()
        .setIsolationLevel('repeatable read')
        .setAccessMode('read only')
        .execute((trx) => compareInSnapshot(built, trx, table));
      if (!compared) return undefined;
      tables.set(table.name, compared);
    }
  } finally {
    await snapshot.close();
  }
  return tables;
}

async function compareInSnapshot(built: Building, trx: AnyDatabase, table: Table): Promise<Compared | undefined> {
  const { rows } = await sql<{ position: number }>`
    SELECT position FROM service.checkpoints WHERE schema_name = ${built.live}`.execute(trx);
  built.target = rows[0]?.position ?? 0;
  if (built.target < built.position) return undefined;
  await built.build.feed([built]);
  const [live, rebuilt] = await Promise.all([
    readable(() => hashTable(trx, built.live, table)),
    built.build.sessions.use(({ db }) => hashTable(db, built.schema, table)),
  ]);
  return { at: built.position, live, rebuilt, certain: true };
}

/** Call this when both are at the same position and the live tables are locked. */
export async function compareLocked(built: Building, trx: AnyDatabase, comparison: Comparison): Promise<void> {
  for (const table of built.projection.tables) {
    const compared = comparison.get(table.name);
    if (!compared?.live) continue;
    if (!compared.certain) {
      compared.live = await hashTable(trx, built.live, table);
      compared.rebuilt = await hashTable(trx, built.schema, table);
    } else if (compared.live.hash === compared.rebuilt.hash) {
      const live = await hashChanges(trx, built.live, table, compared.at);
      const rebuilt = await hashChanges(trx, built.schema, table, compared.at);
      if (live.hash !== rebuilt.hash || live.rows !== rebuilt.rows) Object.assign(compared, { live, rebuilt });
    }
  }
}

/**
 * Undefined when the table or a column is missing or has another type, because the rebuild may be intended to repair
 * just that.
 */
async function readable<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith('42')) return undefined;
    throw error;
  }
}
