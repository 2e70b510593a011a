/** Connections of `pg`. */
import pg from 'pg';

/**
 * A connection that breaks fails whatever uses it, and says so once more by an event, which ends the process where
 * nobody listens. Here somebody does from the very first moment on; who wants to tell of it adds a listener.
 */
export class Client extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on('error', () => undefined);
  }
}
