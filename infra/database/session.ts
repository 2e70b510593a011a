/** Time limits for dedicated connections, so that a server that does not respond cannot block their users for ever. */
import type pg from 'pg';
import { settledWithin } from '../../shared/waiting.ts';

/** Time limit for closing a connection, milliseconds. */
const END_MS = 1_000;

/** Time limit for a query that should be quick, milliseconds. */
const QUERY_MS = 5_000;

/** A query that fails without a response in time. @param ms default: `QUERY_MS` */
export const inTime = (text: string, values: unknown[] = [], ms = QUERY_MS) => ({ text, values, query_timeout: ms });

/** Closes a connection, broken or not. Errors are ignored. */
export async function endInTime(client: pg.Client): Promise<void> {
  await settledWithin(END_MS, client.end()).catch(() => false);
}
