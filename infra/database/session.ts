/** Connections of `pg`, and time limits for dedicated ones: a server that does not respond cannot block their users for ever. */
import pg from 'pg';
import { settledWithin } from '../../shared/waiting.ts';

/** Time limit for closing a connection, milliseconds. */
const END_MS = 1_000;

/** Time limit for a query that should be quick, milliseconds. */
const QUERY_MS = 5_000;

/**
 * A broken connection rejects its pending work and also emits `error`, which would end the process if there were no
 * listener. This class adds one before that can happen; callers that want to log the error add their own.
 */
export class Client extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on('error', () => undefined);
  }
}

/** A query that fails without a response in time. @param ms default: `QUERY_MS` */
export const inTime = (text: string, values: unknown[] = [], ms = QUERY_MS) => ({ text, values, query_timeout: ms });

/** Closes a connection, broken or not. Errors are ignored. */
export async function endInTime(client: pg.Client): Promise<void> {
  await settledWithin(END_MS, client.end()).catch(() => false);
}
