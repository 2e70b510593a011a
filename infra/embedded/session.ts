/**
 * Many connections on the one session of an embedded database.
 *
 * PGlite is a single PostgreSQL backend and treats everything it receives as coming from one client, so this file
 * decides whose messages run next. The unit is a batch (see `batches.ts`): it runs without messages of other
 * connections in between. A connection that leaves a transaction open, or an extended query without its Sync, keeps the
 * session until it ends it. All other connections wait, in order of arrival.
 * docs/adr/0019-a-session-of-our-own-on-pglite.md explains why `@electric-sql/pglite-socket` is not used, and what
 * would change that.
 *
 * What connections still share, because it belongs to the session:
 *
 * - Settings (`SET`, `search_path`, time zone), temporary tables, statements prepared by SQL `PREPARE`; `DISCARD` and
 *   `DEALLOCATE ALL` remove those of all connections. `SET LOCAL` is safe.
 * - Session-level advisory locks: a connection can take one that another holds. Locks of a transaction are safe, since
 *   transactions exclude each other. LISTEN does not work: the session listens on one channel, for the thread that owns
 *   it.
 * - The protocol's named statements are translated, so each connection has its own. The unnamed statement is valid in
 *   the batch that parsed it, which is how `pg` uses it; a later use may fail because it no longer exists, but never
 *   runs another connection's.
 * - Settings in the startup message (`statement_timeout`, `application_name`, `options`) are accepted and have no
 *   effect: nothing can interrupt a statement of PGlite, and a setting would apply to all connections. `pg`'s
 *   `query_timeout` releases the caller, not the session.
 */
import type { Socket } from 'node:net';
import { settledWithin } from '../../shared/waiting.ts';
import { type Batch, type Connection, openConnection, type Refusal, receive, translate } from './batches.ts';
import {
  ABORT_MESSAGE,
  COPY_FAIL_MESSAGE,
  fatal,
  isReady,
  message,
  notificationsIn,
  ROLLBACK_MESSAGE,
  SWAPPED,
  SYNC_MESSAGE,
  text,
} from './protocol.ts';

/** The one session. Runs synchronously: when `run` returns, the messages have been executed and durably committed. */
export interface Engine {
  /** `messages`: whole messages; `receive` is called with views that are valid during the call only. */
  run(messages: Uint8Array, receive: (response: Uint8Array) => void): void;
  inTransaction(): boolean;
}

export interface SessionOptions {
  /** Sent to a client after its startup message: authentication, parameters, ready. */
  readonly greeting: Buffer;
  /** Connections above this number are refused with SQLSTATE 53300. */
  readonly maxConnections: number;
  /** A transaction idle for this long, milliseconds, is rolled back and its connection closed, if others wait for it. */
  readonly idleInTransactionMs: number;
  readonly warn: (message: string) => void;
  /** Called with each schema whose tables a transaction has swapped, before its client learns of the commit. */
  readonly swapped: (schema: string) => void;
}

export interface Session {
  accept(socket: Socket): void;
  /** Runs `job` while no connection has a transaction open and none is served. Jobs run one at a time. */
  exclusive<T>(job: () => Promise<T>): Promise<T>;
  /** Batches run since the start. */
  batches(): number;
  /** Milliseconds since the last batch ended. */
  idleMs(): number;
  /**
   * Lets open transactions finish, refuses everything else, and resolves when no connection is left. After `ms`
   * milliseconds, remaining connections are closed and open transactions rolled back.
   */
  drain(ms: number): Promise<void>;
}

const STOPPING: Refusal = { code: '57P01', reason: 'the embedded database is shutting down' };
/** Longest time that batches run before sockets and timers are served, milliseconds. */
const TURN_MS = 5;

export function createSession(engine: Engine, options: SessionOptions): Session {
  const connections = new Set<Connection>();
  /** Connections with a batch to run, in order. */
  const waiting = new Set<Connection>();
  const jobs: (() => Promise<void>)[] = [];
  /** The connection whose transaction or extended query is open. */
  let owner: Connection | undefined;
  let ownerSince = 0;
  let ownerWarned = false;
  /** The connection that parsed the unnamed statement. */
  let unnamedOf: Connection | undefined;
  let jobRuns = false;
  let scheduled = false;
  let draining = false;
  let drained: (() => void) | undefined;
  let nextId = 1;
  let batchesRun = 0;
  let lastRun = performance.now();

  function accept(socket: Socket): void {
    socket.on('error', () => {
      // The peer is gone; `close` follows and cleans up.
      socket.destroy();
    });
    if (draining || connections.size >= options.maxConnections) {
      const [code, reason] = draining
        ? (['57P03', 'the embedded database is shutting down'] as const)
        : (['53300', `more than ${options.maxConnections} connections to the embedded database`] as const);
      socket.end(fatal(code, reason));
      return;
    }
    const connection = openConnection(nextId++, socket);
    connections.add(connection);
    socket.on('data', (chunk: Buffer) => {
      if (connection.ended) return;
      const refusal = receive(connection, chunk, options.greeting);
      if (refusal) dismiss(connection, refusal);
      if (connection.batches.length > 0) waiting.add(connection);
      pump();
    });
    socket.on('close', () => forget(connection));
  }

  /** Tells the client why, and ends its connection. */
  function dismiss(connection: Connection, { code, reason }: Refusal): void {
    connection.ended = true;
    connection.batches.length = 0;
    waiting.delete(connection);
    if (connection.socket.writable) connection.socket.end(fatal(code, reason));
    // A client that does not close its side gets no more time; what was written is sent first.
    connection.socket.destroySoon();
  }

  function pump(): void {
    if (jobRuns) return;
    const until = performance.now() + TURN_MS;
    for (;;) {
      if (owner === undefined && jobs.length > 0) {
        runJob();
        return;
      }
      const connection = owner ?? waiting.values().next().value;
      const batch = connection?.batches.shift();
      if (connection === undefined || batch === undefined) break;
      waiting.delete(connection);
      runBatch(connection, batch);
      if (connection.batches.length > 0) waiting.add(connection);
      else if (connection.ended) connection.socket.end();
      else if (draining && owner !== connection) dismiss(connection, STOPPING);
      if (performance.now() > until) {
        schedule();
        break;
      }
    }
    if (draining && connections.size === 0) drained?.();
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      pump();
    });
  }

  function runJob(): void {
    const job = jobs.shift();
    if (job === undefined) return;
    jobRuns = true;
    job()
      .then(() => {
        jobRuns = false;
        pump();
      })
      // The engine broke, which ends this thread, just as during a statement.
      .catch((error: unknown) => {
        setImmediate(() => {
          throw error;
        });
      });
  }

  function runBatch(connection: Connection, batch: Batch): void {
    const responses: Buffer[] = [];
    const keep = (response: Uint8Array): void => {
      responses.push(Buffer.from(response));
    };
    let { bytes } = batch;
    if (batch.named || (batch.reuses && unnamedOf !== connection))
      bytes = translate(connection, batch, unnamedOf === connection);
    if (batch.copies) bytes = Buffer.concat([bytes, COPY_FAIL_MESSAGE]);
    engine.run(bytes, keep);
    // A COPY in an extended query swallows the Sync that follows it.
    if (batch.copies && batch.ends === 'sync' && !isReady(Buffer.concat(responses))) engine.run(SYNC_MESSAGE, keep);
    if (batch.parses) unnamedOf = connection;
    batchesRun++;
    lastRun = performance.now();
    if (batch.ends === 'flush' || engine.inTransaction()) {
      owner = connection;
      ownerSince = lastRun;
    } else {
      owner = undefined;
      ownerWarned = false;
      for (const schema of notificationsIn(responses, SWAPPED)) options.swapped(schema);
    }
    const { socket } = connection;
    if (!socket.writable) return;
    socket.cork();
    for (const response of responses) socket.write(response);
    socket.uncork();
  }

  /** Cleans up after a connection, however it ended: undoes whatever it left open. */
  function forget(connection: Connection): void {
    if (!connections.delete(connection)) return;
    waiting.delete(connection);
    connection.ended = true;
    connection.batches.length = 0;
    if (unnamedOf === connection) unnamedOf = undefined;
    if (owner === connection) {
      rollBack();
      owner = undefined;
      ownerWarned = false;
    }
    if (connection.statements.size > 0) {
      const closes = [...connection.statements.values()].map((name) => message('C', Buffer.from('S'), text(name)));
      const bytes = Buffer.concat([...closes, SYNC_MESSAGE]);
      jobs.push(async () => engine.run(bytes, discard));
    }
    pump();
  }

  function rollBack(): void {
    unnamedOf = undefined;
    engine.run(ABORT_MESSAGE, discard);
    if (engine.inTransaction()) engine.run(ROLLBACK_MESSAGE, discard);
  }

  /** Watches for a connection that keeps the session but is idle while others wait. */
  function watch(): void {
    if (owner === undefined || owner.batches.length > 0 || (waiting.size === 0 && jobs.length === 0)) return;
    const idle = performance.now() - ownerSince;
    const seconds = Math.round(idle / 1000);
    if (idle > options.idleInTransactionMs) {
      options.warn(`a transaction idle for ${seconds} s was rolled back: ${waiting.size} connections waited for it`);
      dismiss(owner, {
        code: '25P03',
        reason: `the transaction was idle for ${seconds} s while others waited; the embedded database runs one transaction at a time`,
      });
      rollBack();
      owner = undefined;
      ownerWarned = false;
      pump();
    } else if (idle > options.idleInTransactionMs / 3 && !ownerWarned) {
      ownerWarned = true;
      options.warn(`a transaction has been idle for ${seconds} s while ${waiting.size} connections wait for it`);
    }
  }
  const watching = setInterval(watch, Math.min(1000, options.idleInTransactionMs / 4));
  watching.unref();

  return {
    accept,
    exclusive: (job) =>
      new Promise((resolve, reject) => {
        jobs.push(() => job().then(resolve, reject));
        pump();
      }),
    batches: () => batchesRun,
    idleMs: () => performance.now() - lastRun,
    async drain(ms) {
      draining = true;
      clearInterval(watching);
      const done = new Promise<void>((resolve) => {
        drained = resolve;
      });
      for (const connection of connections) {
        if (connection !== owner && connection.batches.length === 0) {
          dismiss(connection, STOPPING);
        }
      }
      if (connections.size === 0 || (await settledWithin(ms, done))) return;
      options.warn(`${connections.size} connections were closed because they did not finish within ${ms / 1000} s`);
      for (const connection of [...connections]) {
        dismiss(connection, STOPPING);
        connection.socket.destroy();
        forget(connection);
      }
      await done;
    },
  };
}

const discard = (): void => {
  // No client is left to read the response.
};
