/**
 * Many connections on the one session of an embedded database.
 *
 * PGlite is a single PostgreSQL backend: whatever it is told, it takes for the words of one client. So this file decides
 * who may speak. The unit is a *batch*: all messages of a connection up to and including the one that ends it (Query,
 * Sync or Flush). A batch runs without a word of anybody else in between, and a connection that leaves a transaction open
 * (or an extended query without its Sync) keeps the session until it ends it. Everything else waits, first come, first
 * served.
 *
 * `@electric-sql/pglite-socket` 0.2 is not used, because it schedules single messages: two connections that waited for
 * a third one's transaction were seen to run as `Parse A, Parse B, Bind A, Bind B`, which executes B's statement with
 * A's parameters and answers A with nothing, without an error. An exception in the engine also stopped its queue for good.
 *
 * What the connections still share, because it belongs to the session:
 *
 * - Settings (`SET`, `search_path`, time zone), temporary tables, statements made by SQL `PREPARE`; `DISCARD` and
 *   `DEALLOCATE ALL` take away everybody's. `SET LOCAL` is safe.
 * - Session-level advisory locks: a connection gets one while another holds it. Those of a transaction are safe, since
 *   transactions exclude each other. LISTEN is of no use.
 * - Named statements of the protocol are translated, so each connection has its own. The unnamed one is good for the batch
 *   that parsed it, as `pg` uses it; a later use may be told that it does not exist, and never runs another connection's.
 * - Settings in the startup message (`statement_timeout`, `application_name`, `options`) are accepted and have no effect:
 *   nothing can interrupt a statement of PGlite, and a setting would be everybody's. `query_timeout` of `pg` frees the
 *   caller, not the session.
 */
import type { Socket } from 'node:net';
import { settledWithin } from '../../shared/waiting.ts';

/** The one session. Runs synchronously: when `run` returns, the messages have been executed and durably committed. */
export interface Engine {
  /** `messages`: whole messages; `receive` is called with views that are valid during the call only. */
  run(messages: Uint8Array, receive: (answer: Uint8Array) => void): void;
  inTransaction(): boolean;
}

export interface SessionOptions {
  /** What a client is told after its startup message: authentication, parameters, ready. */
  readonly greeting: Buffer;
  /** Connections above this number are refused with SQLSTATE 53300. */
  readonly maxConnections: number;
  /** A transaction idle for this long, milliseconds, is rolled back and its connection closed, if others wait for it. */
  readonly idleInTransactionMs: number;
  readonly warn: (message: string) => void;
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
   * Serves what is under way, refuses the rest, and resolves when no connection is left. After `ms` milliseconds the
   * rest is cut off and open transactions are rolled back.
   */
  drain(ms: number): Promise<void>;
}

/** What has to be known of a batch before it runs. */
interface Findings {
  /** Uses a named statement, so names must be translated. */
  named: boolean;
  /** Parses the unnamed statement. */
  parses: boolean;
  /** Uses the unnamed statement of an earlier batch, which may be another connection's by now. */
  reuses: boolean;
  /** May be COPY FROM STDIN. */
  copies: boolean;
}

interface Batch extends Readonly<Findings> {
  readonly bytes: Buffer;
  /** `flush`: the extended query goes on, so the session stays with this connection. */
  readonly ends: 'sync' | 'flush';
}

interface Connection {
  readonly id: number;
  readonly socket: Socket;
  /** Bytes received and not yet cut into batches: `buffer[0..used)`, of which `[0..scanned)` are whole messages. */
  buffer: Buffer;
  used: number;
  scanned: number;
  greeted: boolean;
  /** The client said goodbye, or was shown the door. */
  ended: boolean;
  readonly batches: Batch[];
  /** What is known of the batch in `[0..scanned)`. */
  pending: Findings;
  /** A statement that may be COPY FROM STDIN was parsed; any later batch can execute it. */
  parsedCopy: boolean;
  /** The client's statement name to the session's. */
  readonly statements: Map<string, string>;
  statementsMade: number;
}

const PROTOCOL_3 = 3;
const SSL_REQUEST = 80_877_103;
const GSS_REQUEST = 80_877_104;
const CANCEL_REQUEST = 80_877_102;
/** PostgreSQL's own limits: the engine takes a longer message for a broken connection and shuts down. */
const SMALL_MESSAGE_BYTES = 10_000;
/** Far above any statement of ours; PostgreSQL's own limit of 1 GB would not fit into PGlite's memory. */
const LARGE_MESSAGE_BYTES = 128 * 1024 * 1024;
/** Longest run of batches before sockets and timers get their turn, milliseconds. */
const TURN_MS = 5;
const EMPTY = Buffer.alloc(0);
const NOTHING_FOUND: Findings = { named: false, parses: false, reuses: false, copies: false };

const type = (letter: string): number => letter.charCodeAt(0);
const PARSE = type('P');
const BIND = type('B');
const DESCRIBE = type('D');
const EXECUTE = type('E');
const CLOSE = type('C');
const FLUSH = type('H');
const SYNC = type('S');
const QUERY = type('Q');
const TERMINATE = type('X');
const COPY_DATA = type('d');
const COPY_DONE = type('c');
const COPY_FAIL = type('f');
const READY = type('Z');
/** In Describe and Close: what follows is the name of a statement, not of a portal. */
const STATEMENT = type('S');

const LIMITS = new Map<number, number>([
  ...[PARSE, BIND, QUERY, COPY_DATA].map((kind) => [kind, LARGE_MESSAGE_BYTES] as const),
  ...[DESCRIBE, EXECUTE, CLOSE, FLUSH, SYNC, TERMINATE, COPY_DONE, COPY_FAIL].map(
    (kind) => [kind, SMALL_MESSAGE_BYTES] as const,
  ),
]);

const text = (value: string): Buffer => Buffer.from(`${value}\0`, 'utf8');

/** One message of the protocol: type, length, body. */
export function message(letter: string, ...body: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(5);
  head.write(letter, 'latin1');
  head.writeInt32BE(
    body.reduce((sum, part) => sum + part.length, 4),
    1,
  );
  return Buffer.concat([head, ...body]);
}

/** The first message of a client: protocol 3.0 and these parameters. */
export function startupMessage(parameters: Readonly<Record<string, string>>): Buffer {
  const body = Buffer.concat([
    ...Object.entries(parameters).flatMap(([name, value]) => [text(name), text(value)]),
    EMPTY,
  ]);
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + body.length + 1, 0);
  head.writeInt32BE(PROTOCOL_3 << 16, 4);
  return Buffer.concat([head, body, Buffer.alloc(1)]);
}

const fatal = (code: string, reason: string): Buffer =>
  message('E', text('SFATAL'), text('VFATAL'), text(`C${code}`), text(`M${reason}`), Buffer.alloc(1));

/** NegotiateProtocolVersion: 3.0, and no optional parameter is unknown. */
const NEGOTIATE_MESSAGE = message('v', Buffer.from([0, PROTOCOL_3, 0, 0]), Buffer.alloc(4));
const SYNC_MESSAGE = message('S');
const ROLLBACK_MESSAGE = message('Q', text('ROLLBACK'));
/** Fails to parse, which aborts whatever is under way; the Sync then closes it without a commit. */
const ABORT_MESSAGE = Buffer.concat([
  message('P', text(''), text('a connection ended in here'), Buffer.alloc(2)),
  SYNC_MESSAGE,
]);
/** The engine ignores it unless it waits for the data of a COPY, which it could only wait for by shutting down. */
const COPY_FAIL_MESSAGE = message('f', text('COPY FROM STDIN is not available on the embedded database; use INSERT'));

export function createSession(engine: Engine, options: SessionOptions): Session {
  const connections = new Set<Connection>();
  /** Connections with a batch to run, in the order of their turn. */
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
    const connection: Connection = {
      id: nextId++,
      socket,
      buffer: EMPTY,
      used: 0,
      scanned: 0,
      greeted: false,
      ended: false,
      batches: [],
      pending: { ...NOTHING_FOUND },
      parsedCopy: false,
      statements: new Map(),
      statementsMade: 0,
    };
    connections.add(connection);
    socket.on('data', (chunk: Buffer) => {
      if (connection.ended) return;
      append(connection, chunk);
      receive(connection);
    });
    socket.on('close', () => forget(connection));
  }

  function receive(connection: Connection): void {
    while (!connection.ended) {
      const progress = connection.greeted ? readMessage(connection) : readStartup(connection);
      if (!progress) break;
    }
    if (connection.batches.length > 0) waiting.add(connection);
    pump();
  }

  /** True when something was read and there may be more. */
  function readStartup(connection: Connection): boolean {
    if (connection.used < 8) return false;
    const length = connection.buffer.readInt32BE(0);
    const code = connection.buffer.readInt32BE(4);
    if (length < 8 || length > SMALL_MESSAGE_BYTES)
      return dismiss(connection, '08P01', 'invalid length of startup packet');
    if (connection.used < length) return false;
    consume(connection, length);
    if (code === SSL_REQUEST || code === GSS_REQUEST) {
      connection.socket.write('N');
      return true;
    }
    if (code === CANCEL_REQUEST) {
      // A running statement keeps this thread busy: by the time the request is read, it has ended.
      connection.ended = true;
      connection.socket.end();
      return false;
    }
    if (code >>> 16 !== PROTOCOL_3)
      return dismiss(connection, '0A000', 'unsupported frontend protocol; 3.0 is spoken here');
    if ((code & 0xffff) !== 0) {
      connection.socket.write(NEGOTIATE_MESSAGE);
    }
    connection.greeted = true;
    connection.socket.write(options.greeting);
    return true;
  }

  /** True when a whole message was read and there may be more. */
  function readMessage(connection: Connection): boolean {
    const { buffer, scanned, used } = connection;
    if (used - scanned < 5) return false;
    const kind = buffer[scanned] ?? 0;
    const length = buffer.readInt32BE(scanned + 1);
    const limit = LIMITS.get(kind);
    if (limit === undefined || length < 4) {
      return dismiss(connection, '08P01', `invalid frontend message type ${kind} or length ${length}`);
    }
    if (length > limit) return dismiss(connection, '54000', `a message of ${length} bytes; the limit is ${limit}`);
    const end = scanned + 1 + length;
    if (used < end) {
      if (buffer.length < end) connection.buffer = enlarge(buffer, used, end);
      return false;
    }
    const body = buffer.subarray(scanned + 5, end);
    const { pending } = connection;
    switch (kind) {
      case TERMINATE:
        connection.ended = true;
        if (connection.batches.length === 0) connection.socket.end();
        return false;
      case COPY_DATA:
      case COPY_DONE:
      case COPY_FAIL:
        // The rest of a COPY that was refused.
        if (scanned === 0) {
          consume(connection, end);
          return true;
        }
        break;
      case PARSE:
        if (body[0] === 0) pending.parses = true;
        else pending.named = true;
        connection.parsedCopy ||= mayCopy(body);
        break;
      case BIND:
        noteUse(pending, cutString(body, cutString(body, 0).end).value);
        break;
      case DESCRIBE:
      case CLOSE:
        if (body[0] === STATEMENT) noteUse(pending, cutString(body, 1).value);
        break;
      case QUERY:
        pending.copies = mayCopy(body);
        break;
    }
    connection.scanned = end;
    if (kind === SYNC || kind === QUERY || kind === FLUSH) {
      const bytes = buffer.subarray(0, end);
      consume(connection, end);
      connection.batches.push({
        bytes,
        ends: kind === FLUSH ? 'flush' : 'sync',
        ...pending,
        copies: pending.copies || connection.parsedCopy,
      });
      connection.pending = { ...NOTHING_FOUND };
    }
    return true;
  }

  /** Tells the client why, ends the connection, and returns false: there is nothing more to read. */
  function dismiss(connection: Connection, code: string, reason: string): false {
    connection.ended = true;
    connection.batches.length = 0;
    waiting.delete(connection);
    if (connection.socket.writable) connection.socket.end(fatal(code, reason));
    // A client that does not close its side gets no more time; what was written is sent first.
    connection.socket.destroySoon();
    return false;
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
      else if (draining && owner !== connection) dismiss(connection, '57P01', 'the embedded database is shutting down');
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
      // The engine broke. As when it breaks under a statement, that is the end of this thread.
      .catch((error: unknown) => {
        setImmediate(() => {
          throw error;
        });
      });
  }

  function runBatch(connection: Connection, batch: Batch): void {
    const answers: Buffer[] = [];
    const keep = (answer: Uint8Array): void => {
      answers.push(Buffer.from(answer));
    };
    let { bytes } = batch;
    if (batch.named || (batch.reuses && unnamedOf !== connection)) bytes = translate(connection, batch);
    if (batch.copies) bytes = Buffer.concat([bytes, COPY_FAIL_MESSAGE]);
    engine.run(bytes, keep);
    // A COPY in an extended query swallows the Sync that follows it.
    if (batch.copies && batch.ends === 'sync' && !isReady(Buffer.concat(answers))) engine.run(SYNC_MESSAGE, keep);
    if (batch.parses) unnamedOf = connection;
    batchesRun++;
    lastRun = performance.now();
    if (batch.ends === 'flush' || engine.inTransaction()) {
      owner = connection;
      ownerSince = lastRun;
    } else {
      owner = undefined;
      ownerWarned = false;
    }
    const { socket } = connection;
    if (!socket.writable) return;
    socket.cork();
    for (const answer of answers) socket.write(answer);
    socket.uncork();
  }

  /** The batch with the connection's statement names replaced by names that no other connection has. */
  function translate(connection: Connection, batch: Batch): Buffer {
    const parts: Buffer[] = [];
    let unnamedIsOurs = unnamedOf === connection;
    for (let start = 0; start < batch.bytes.length; ) {
      const end = start + 1 + batch.bytes.readInt32BE(start + 1);
      const whole = batch.bytes.subarray(start, end);
      const kind = whole[0];
      const letter = String.fromCharCode(kind ?? 0);
      // Where the statement's name begins; -1 for messages without one.
      let at = -1;
      if (kind === PARSE) at = 5;
      else if (kind === BIND) at = 5 + cutString(whole.subarray(5), 0).end;
      else if ((kind === DESCRIBE || kind === CLOSE) && whole[5] === STATEMENT) at = 6;
      start = end;
      const name = at < 0 ? undefined : cutString(whole, at);
      if (name?.value === undefined) {
        parts.push(whole);
      } else if (name.value === '') {
        if (kind === PARSE) unnamedIsOurs = true;
        // Another connection's statement must not be run instead: this name is unknown, which is the right error.
        if (unnamedIsOurs || kind === CLOSE) parts.push(whole);
        else
          parts.push(
            message(letter, whole.subarray(5, at), text(`unnamed_${connection.id}`), whole.subarray(name.end)),
          );
      } else {
        const ours = connection.statements.get(name.value) ?? `c${connection.id}_${++connection.statementsMade}`;
        if (kind === PARSE) connection.statements.set(name.value, ours);
        if (kind === CLOSE) connection.statements.delete(name.value);
        parts.push(message(letter, whole.subarray(5, at), text(ours), whole.subarray(name.end)));
      }
    }
    return Buffer.concat(parts);
  }

  /** A connection has ended, in good order or not: whatever it left open is undone. */
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

  /** Looks after a connection that keeps the session and says nothing while others wait. */
  function watch(): void {
    if (owner === undefined || owner.batches.length > 0 || (waiting.size === 0 && jobs.length === 0)) return;
    const idle = performance.now() - ownerSince;
    const seconds = Math.round(idle / 1000);
    if (idle > options.idleInTransactionMs) {
      options.warn(`a transaction idle for ${seconds} s was rolled back: ${waiting.size} connections waited for it`);
      dismiss(
        owner,
        '25P03',
        `the transaction was idle for ${seconds} s while others waited; the embedded database runs one transaction at a time`,
      );
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
          dismiss(connection, '57P01', 'the embedded database is shutting down');
        }
      }
      if (connections.size === 0 || (await settledWithin(ms, done))) return;
      options.warn(`${connections.size} connections were cut off: they did not finish within ${ms / 1000} s`);
      for (const connection of [...connections]) {
        dismiss(connection, '57P01', 'the embedded database is shutting down');
        connection.socket.destroy();
        forget(connection);
      }
      await done;
    },
  };
}

const discard = (): void => {
  // Nobody is there to read the answer.
};

function append(connection: Connection, chunk: Buffer): void {
  if (connection.used === 0) {
    connection.buffer = chunk;
    connection.used = chunk.length;
    return;
  }
  const used = connection.used + chunk.length;
  if (used > connection.buffer.length) connection.buffer = enlarge(connection.buffer, connection.used, used * 2);
  chunk.copy(connection.buffer, connection.used);
  connection.used = used;
}

function enlarge(buffer: Buffer, used: number, size: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(size);
  buffer.copy(larger, 0, 0, used);
  return larger;
}

function consume(connection: Connection, bytes: number): void {
  connection.used -= bytes;
  connection.scanned = 0;
  connection.buffer = connection.used === 0 ? EMPTY : connection.buffer.subarray(bytes);
}

/** The zero-terminated string at `start`, and where the next field begins; no value when the terminator is missing. */
function cutString(bytes: Buffer, start: number): { value: string | undefined; end: number } {
  const zero = bytes.indexOf(0, start);
  if (zero < 0) return { value: undefined, end: bytes.length };
  return { value: zero === start ? '' : bytes.toString('latin1', start, zero), end: zero + 1 };
}

function noteUse(pending: Connection['pending'], name: string | undefined): void {
  if (name === '') pending.reuses ||= !pending.parses;
  else if (name !== undefined) pending.named = true;
}

/** Errs on the side of yes: a yes costs one more message, a wrong no would shut the engine down. */
function mayCopy(body: Buffer): boolean {
  const words = body.toString('latin1');
  return /copy/i.test(words) && /stdin/i.test(words);
}

/** Whether an answer ends with ReadyForQuery. */
function isReady(answer: Buffer): boolean {
  return answer.length >= 6 && answer[answer.length - 6] === READY && answer.readInt32BE(answer.length - 5) === 5;
}
