/** The messages of PostgreSQL's protocol, as far as the session on the embedded database reads and writes them. */

export const PROTOCOL_3 = 3;
export const SSL_REQUEST = 80_877_103;
export const GSS_REQUEST = 80_877_104;
export const CANCEL_REQUEST = 80_877_102;
/** PostgreSQL's own limits: the engine treats a longer message as a broken connection and shuts down. */
export const SMALL_MESSAGE_BYTES = 10_000;
/** Far more than any statement of ours needs; PostgreSQL's own limit of 1 GB would exceed PGlite's memory. */
const LARGE_MESSAGE_BYTES = 128 * 1024 * 1024;

const type = (letter: string): number => letter.charCodeAt(0);
export const PARSE = type('P');
export const BIND = type('B');
export const DESCRIBE = type('D');
export const EXECUTE = type('E');
export const CLOSE = type('C');
export const FLUSH = type('H');
export const SYNC = type('S');
export const QUERY = type('Q');
export const TERMINATE = type('X');
export const COPY_DATA = type('d');
export const COPY_DONE = type('c');
export const COPY_FAIL = type('f');
const READY = type('Z');
const NOTIFICATION = type('A');
/** In Describe and Close: what follows is the name of a statement, not of a portal. */
export const STATEMENT = type('S');

/** Maximum length of each type of message from a client, bytes. */
export const LIMITS = new Map<number, number>([
  ...[PARSE, BIND, QUERY, COPY_DATA].map((kind) => [kind, LARGE_MESSAGE_BYTES] as const),
  ...[DESCRIBE, EXECUTE, CLOSE, FLUSH, SYNC, TERMINATE, COPY_DONE, COPY_FAIL].map(
    (kind) => [kind, SMALL_MESSAGE_BYTES] as const,
  ),
]);

/** A string in the protocol's encoding. */
export const text = (value: string): Buffer => Buffer.from(`${value}\0`, 'utf8');

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
  const body = Buffer.concat([...Object.entries(parameters).flatMap(([name, value]) => [text(name), text(value)])]);
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + body.length + 1, 0);
  head.writeInt32BE(PROTOCOL_3 << 16, 4);
  return Buffer.concat([head, body, Buffer.alloc(1)]);
}

/** The error that a client gets before its connection is closed; `code` is an SQLSTATE. */
export const fatal = (code: string, reason: string): Buffer =>
  message('E', text('SFATAL'), text('VFATAL'), text(`C${code}`), text(`M${reason}`), Buffer.alloc(1));

/** NegotiateProtocolVersion: 3.0, and no optional parameter is unknown. */
export const NEGOTIATE_MESSAGE = message('v', Buffer.from([0, PROTOCOL_3, 0, 0]), Buffer.alloc(4));
export const SYNC_MESSAGE = message('S');
export const ROLLBACK_MESSAGE = message('Q', text('ROLLBACK'));
/** Fails to parse, which aborts the open transaction; the Sync then ends it without a commit. */
export const ABORT_MESSAGE = Buffer.concat([
  message('P', text(''), text('a connection ended in here'), Buffer.alloc(2)),
  SYNC_MESSAGE,
]);
/** The engine ignores it unless it waits for the data of a COPY, which it could only wait for by shutting down. */
export const COPY_FAIL_MESSAGE = message(
  'f',
  text('COPY FROM STDIN is not available on the embedded database; use INSERT'),
);

/** The zero-terminated string at `start`, and where the next field begins; no value if the terminator is missing. */
export function cutString(bytes: Buffer, start: number): { value: string | undefined; end: number } {
  const zero = bytes.indexOf(0, start);
  if (zero < 0) return { value: undefined, end: bytes.length };
  return { value: zero === start ? '' : bytes.toString('latin1', start, zero), end: zero + 1 };
}

/** Whether a response ends with ReadyForQuery. */
export function isReady(response: Buffer): boolean {
  return (
    response.length >= 6 && response[response.length - 6] === READY && response.readInt32BE(response.length - 5) === 5
  );
}

/** The channel on which a rebuild names the schema whose tables it has swapped. */
export const SWAPPED = 'signalbox_swapped';
export const LISTEN_MESSAGE = message('Q', text(`LISTEN ${SWAPPED}`));

/** Payloads of a channel's notifications among the messages of a response, which may be split anywhere. */
export function notificationsIn(responses: readonly Buffer[], channel: string): string[] {
  const bytes = responses.length === 1 ? (responses[0] as Buffer) : Buffer.concat(responses);
  const found: string[] = [];
  for (let at = 0; at + 5 <= bytes.length; at += 1 + bytes.readInt32BE(at + 1)) {
    if (bytes[at] !== NOTIFICATION) continue;
    // The process, the channel, the payload.
    const { value, end } = cutString(bytes, at + 9);
    if (value === channel) found.push(cutString(bytes, end).value ?? '');
  }
  return found;
}
