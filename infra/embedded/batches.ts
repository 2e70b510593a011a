/**
 * The data from a client of the embedded database, cut into batches: all messages up to and including the one that ends
 * them (Query, Sync or Flush). Statement names are translated, because the session behind all connections has only one
 * name space for them.
 */
import type { Socket } from 'node:net';
import {
  BIND,
  CANCEL_REQUEST,
  CLOSE,
  COPY_DATA,
  COPY_DONE,
  COPY_FAIL,
  cutString,
  DESCRIBE,
  FLUSH,
  GSS_REQUEST,
  LIMITS,
  message,
  NEGOTIATE_MESSAGE,
  PARSE,
  PROTOCOL_3,
  QUERY,
  SMALL_MESSAGE_BYTES,
  SSL_REQUEST,
  STATEMENT,
  SYNC,
  TERMINATE,
  text,
} from './protocol.ts';

/** Facts about a batch that are needed before it runs. */
interface Findings {
  /** Uses a named statement, so names must be translated. */
  named: boolean;
  /** Parses the unnamed statement. */
  parses: boolean;
  /** Uses the unnamed statement of an earlier batch, which may now be another connection's. */
  reuses: boolean;
  /** May be COPY FROM STDIN. */
  copies: boolean;
}

export interface Batch extends Readonly<Findings> {
  readonly bytes: Buffer;
  /** `flush`: the extended query continues, so this connection keeps the session. */
  readonly ends: 'sync' | 'flush';
}

export interface Connection {
  readonly id: number;
  readonly socket: Socket;
  /** Bytes received and not yet cut into batches: `buffer[0..used)`, of which `[0..scanned)` are whole messages. */
  buffer: Buffer;
  used: number;
  scanned: number;
  greeted: boolean;
  /** The client has ended the connection, or was dismissed. */
  ended: boolean;
  readonly batches: Batch[];
  /** What is known about the batch in `[0..scanned)`. */
  pending: Findings;
  /** A statement that may be COPY FROM STDIN was parsed; any later batch can execute it. */
  parsedCopy: boolean;
  /** The client's statement name to the session's. */
  readonly statements: Map<string, string>;
  statementsMade: number;
}

/** Why a client is disconnected. */
export interface Refusal {
  /** SQLSTATE. */
  readonly code: string;
  readonly reason: string;
}

/** `more`: something was read, and there may be more. */
type Step = 'more' | 'enough' | Refusal;

const EMPTY = Buffer.alloc(0);
const NOTHING_FOUND: Findings = { named: false, parses: false, reuses: false, copies: false };

export const openConnection = (id: number, socket: Socket): Connection => ({
  id,
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
});

/**
 * Receives data from a client: responds to its startup message with the greeting, then adds to its batches.
 *
 * @returns the reason if the client must be disconnected
 */
export function receive(connection: Connection, chunk: Buffer, greeting: Buffer): Refusal | undefined {
  append(connection, chunk);
  while (!connection.ended) {
    const step = connection.greeted ? readMessage(connection) : readStartup(connection, greeting);
    if (step === 'enough') return undefined;
    if (step !== 'more') return step;
  }
  return undefined;
}

function readStartup(connection: Connection, greeting: Buffer): Step {
  if (connection.used < 8) return 'enough';
  const length = connection.buffer.readInt32BE(0);
  const code = connection.buffer.readInt32BE(4);
  if (length < 8 || length > SMALL_MESSAGE_BYTES) return { code: '08P01', reason: 'invalid length of startup packet' };
  if (connection.used < length) return 'enough';
  consume(connection, length);
  if (code === SSL_REQUEST || code === GSS_REQUEST) {
    connection.socket.write('N');
    return 'more';
  }
  if (code === CANCEL_REQUEST) {
    // A running statement keeps this thread busy: when the cancel request is read, the statement has already ended.
    connection.ended = true;
    connection.socket.end();
    return 'enough';
  }
  if (code >>> 16 !== PROTOCOL_3)
    return { code: '0A000', reason: 'unsupported frontend protocol; this server supports 3.0' };
  if ((code & 0xffff) !== 0) {
    connection.socket.write(NEGOTIATE_MESSAGE);
  }
  connection.greeted = true;
  connection.socket.write(greeting);
  return 'more';
}

function readMessage(connection: Connection): Step {
  const { buffer, scanned, used } = connection;
  if (used - scanned < 5) return 'enough';
  const kind = buffer[scanned] ?? 0;
  const length = buffer.readInt32BE(scanned + 1);
  const limit = LIMITS.get(kind);
  if (limit === undefined || length < 4) {
    return { code: '08P01', reason: `invalid frontend message type ${kind} or length ${length}` };
  }
  if (length > limit) return { code: '54000', reason: `a message of ${length} bytes; the limit is ${limit}` };
  const end = scanned + 1 + length;
  if (used < end) {
    if (buffer.length < end) connection.buffer = enlarge(buffer, used, end);
    return 'enough';
  }
  const body = buffer.subarray(scanned + 5, end);
  const { pending } = connection;
  switch (kind) {
    case TERMINATE:
      connection.ended = true;
      if (connection.batches.length === 0) connection.socket.end();
      return 'enough';
    case COPY_DATA:
    case COPY_DONE:
    case COPY_FAIL:
      // The rest of a refused COPY.
      if (scanned === 0) {
        consume(connection, end);
        return 'more';
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
  return 'more';
}

/**
 * The batch with the connection's statement names replaced by names that no other connection has.
 *
 * @param parsedUnnamed the unnamed statement is this connection's
 */
export function translate(connection: Connection, batch: Batch, parsedUnnamed: boolean): Buffer {
  const parts: Buffer[] = [];
  let unnamedIsOurs = parsedUnnamed;
  for (let start = 0; start < batch.bytes.length; ) {
    const end = start + 1 + batch.bytes.readInt32BE(start + 1);
    const whole = batch.bytes.subarray(start, end);
    const kind = whole[0];
    const letter = String.fromCharCode(kind ?? 0);
    // Offset of the statement's name; -1 for messages without one.
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
        parts.push(message(letter, whole.subarray(5, at), text(`unnamed_${connection.id}`), whole.subarray(name.end)));
    } else {
      const ours = connection.statements.get(name.value) ?? `c${connection.id}_${++connection.statementsMade}`;
      if (kind === PARSE) connection.statements.set(name.value, ours);
      if (kind === CLOSE) connection.statements.delete(name.value);
      parts.push(message(letter, whole.subarray(5, at), text(ours), whole.subarray(name.end)));
    }
  }
  return Buffer.concat(parts);
}

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

function noteUse(pending: Connection['pending'], name: string | undefined): void {
  if (name === '') pending.reuses ||= !pending.parses;
  else if (name !== undefined) pending.named = true;
}

/** Errs on the side of yes: a wrong yes costs one more message, but a wrong no would shut the engine down. */
function mayCopy(body: Buffer): boolean {
  const words = body.toString('latin1');
  return /copy/i.test(words) && /stdin/i.test(words);
}
