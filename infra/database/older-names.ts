/**
 * Names that are older than their claims (`commands/names.ts`) are looked up in read models. Only events up to the
 * position where the log ended when a program that claims every name first opened these stores can have such names, so
 * claiming a name never waits for later ones.
 */
import type { Position } from '../../shared/ports/event-log.ts';
import type { Database } from './database.ts';

/** @param head of the log, now */
export async function olderNamesUpTo({ pool }: Pick<Database, 'pool'>, head: Position): Promise<Position> {
  await pool.query('INSERT INTO service.older_names (position) VALUES ($1) ON CONFLICT DO NOTHING', [head]);
  const { rows } = await pool.query('SELECT position FROM service.older_names');
  return Number(rows[0].position);
}

/** To be called when a log is restored: the next start notes where it ends. */
export async function forgetOlderNames({ pool }: Pick<Database, 'pool'>): Promise<void> {
  await pool.query('DELETE FROM service.older_names');
}
