/**
 * Replaces the live read model with the rebuilt one, or discards the latter.
 *
 * The switch renames two schemas. The old one is dropped afterwards, not in the same transaction: a batch of the live
 * read model may have locked its tables while it waits for the checkpoint that we have locked.
 */
import { sql } from 'kysely';
import { historyOf } from '../../../projections/projection.ts';
import type { Position } from '../../../shared/ports/event-log.ts';
import type { AnyDatabase } from '../../database/database.ts';
import { SWAPPED } from '../../embedded/protocol.ts';
import { keepHistory } from '../../following/checkpoints.ts';
import { createHistory, createPast, indexHistory } from '../history.ts';
import { dropTables, dropUnused } from '../tables.ts';
import type { Building } from './building.ts';
import { type Comparison, compareLocked } from './comparing.ts';

/** Maximum number of attempts to take a lock. */
const TRIES = 10;

/** Whether a statement has waited too long for a lock, or has met a deadlock. */
const isLocked = (error: unknown) => ['55P03', '40P01'].includes((error as { code?: string }).code ?? '');

/** Catches up, compares what remains, and switches unless this is only a check. */
export async function settle(built: Building, comparison: Comparison | undefined): Promise<void> {
  const { sessions, check, signal, lockMs } = built.build;
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted();
    await built.catchUp();
    const ahead = await built.readAhead();
    if (!check) built.tell('switching');
    try {
      const settled = await sessions.use(({ db }) =>
        db.transaction().execute(async (trx) => {
          await sql.raw(`SET LOCAL lock_timeout = ${lockMs}`).execute(trx);
          const { rows } = await sql<{ position: number }>`
            SELECT position FROM service.checkpoints WHERE schema_name = ${built.live} FOR UPDATE`.execute(trx);
          const live = built.foreign ? 0 : (rows[0]?.position ?? 0);
          if (live > ahead.end) return undefined;
          await built.catchUpLocked(trx, ahead.events, live);
          const end = Math.max(live, built.position);
          if (comparison && end === live) await compareLocked(built, trx, comparison);
          if (!check) await switchTables(built, trx, end);
          return { end };
        }),
      );
      if (settled) {
        built.position = settled.end;
        built.stored = settled.end;
        return;
      }
    } catch (error) {
      if (!isLocked(error) || attempt >= TRIES) throw built.explained(error);
    }
  }
}

async function switchTables(built: Building, trx: AnyDatabase, position: Position): Promise<void> {
  await sql`DELETE FROM service.checkpoints WHERE schema_name = ${built.schema}`.execute(trx);
  await sql`UPDATE service.checkpoints SET position = ${position}, changed = ${position}, generation = generation + 1,
    ${sql.raw(built.build.history ? `history_from = ${built.build.historyFrom}, history_to = ${position}` : keepHistory(String(position)))},
    stuck_at = NULL, stuck_reason = NULL, updated_at = ${Date.now()} WHERE schema_name = ${built.live}`.execute(trx);
  const { rows } = await sql`SELECT 1 FROM pg_namespace WHERE nspname = ${built.live}`.execute(trx);
  if (rows.length > 0) {
    await sql`ALTER SCHEMA ${sql.id(built.live)} RENAME TO ${sql.id(built.old)}`.execute(trx);
  }
  await sql`ALTER SCHEMA ${sql.id(built.schema)} RENAME TO ${sql.id(built.live)}`.execute(trx);
  await switchHistory(built, trx);
  await createPast(trx, built.projection, built.live);
  // On a server, readers check the generation; a process that owns the embedded database does not.
  if (built.build.stores.database.kind === 'server')
    await sql`SELECT pg_notify('signalbox_positions', ${`${built.live}:${position}`})`.execute(trx);
  else await sql`SELECT pg_notify(${SWAPPED}, ${built.live})`.execute(trx);
}

async function switchHistory(built: Building, trx: AnyDatabase): Promise<void> {
  const [live, old, fresh] = [historyOf(built.live), historyOf(built.old), historyOf(built.schema)];
  // Versions from another log are meaningless here.
  if (!built.build.history && !built.foreign) return;
  await sql`ALTER SCHEMA ${sql.id(live)} RENAME TO ${sql.id(old)}`.execute(trx);
  if (built.build.history) {
    await sql`ALTER SCHEMA ${sql.id(fresh)} RENAME TO ${sql.id(live)}`.execute(trx);
    return;
  }
  await createHistory(trx, built.projection, built.live);
  await indexHistory(trx, built.projection, built.live);
}

export async function dropBuilt(built: Building): Promise<void> {
  await built.build.sessions.use(({ db }) => db.transaction().execute((trx) => dropUnused(trx, built.schema)));
}

/** Readers of the old tables finish first; between attempts, new ones get through. */
export async function dropOld(built: Building): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await built.build.sessions.use(({ db }) =>
        db.transaction().execute(async (trx) => {
          await sql.raw(`SET LOCAL lock_timeout = ${built.build.lockMs}`).execute(trx);
          await dropTables(trx, built.old);
        }),
      );
      return;
    } catch (error) {
      if (!isLocked(error)) throw error;
      if (attempt < TRIES) continue;
      built.build.stores.log.warn({ schema: built.old }, 'the old tables are in use; the next rebuild removes them');
      return;
    }
  }
}
