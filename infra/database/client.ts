/** Connections of `pg`. */
import pg from 'pg';

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
