/**
 * Names that are older than their claims (`commands/names.ts`) are looked up in read models. Only events up to a stored
 * position can have such names: the end of the log when a program that claims every name first opened these stores. So
 * claiming a name never waits for later events.
 */
import type { Position } from '../../shared/ports/event-log.ts';
import type { Database } from './database.ts';

/** @param head current head of the log */
export async function olderNamesUpTo({ pool }: Pick<Database, 'pool'>, head: Position): Promise<Position> {
  await pool.query('INSERT INTO service.older_names (position) VALUES ($1) ON CONFLICT DO NOTHING', [head]);
  const { rows } = await pool.query('SELECT position FROM service.older_names');
  return Number(rows[0].position);
}

/** Call this when a log is restored: the next start records its end again. */
export async function forgetOlderNames({ pool }: Pick<Database, 'pool'>): Promise<void> {
  await pool.query('DELETE FROM service.older_names');
}
