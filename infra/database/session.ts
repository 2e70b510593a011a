/** Time limits for dedicated connections, so that a server that does not answer cannot hold their users up for ever. */
import type pg from 'pg';
import { settledWithin } from '../../shared/waiting.ts';

/** How long closing a connection may take, milliseconds. */
const END_MS = 1_000;

/** How long a query may take that should be quick, milliseconds. */
const QUERY_MS = 5_000;

/** A query that fails when there is no answer in time. @param ms by default, it should be quick */
export const inTime = (text: string, values: unknown[] = [], ms = QUERY_MS) => ({ text, values, query_timeout: ms });

/** Closes a connection, broken or not. Errors no longer matter. */
export async function endInTime(client: pg.Client): Promise<void> {
  await settledWithin(END_MS, client.end()).catch(() => false);
}
