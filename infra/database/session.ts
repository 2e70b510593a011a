/** Connections of one's own, which a silent server must not hold up for good. */
import type pg from 'pg';
import { settledWithin } from '../../shared/waiting.ts';

/** How long a connection may take to say goodbye, milliseconds. */
const END_MS = 1_000;

/** A short question. */
export const inTime = (text: string, values: unknown[] = []) => ({ text, values, query_timeout: 5_000 });

/** Ends a connection, broken or not; what is wrong with it matters to nobody any more. */
export async function endInTime(client: pg.Client): Promise<void> {
  await settledWithin(END_MS, client.end()).catch(() => false);
}
