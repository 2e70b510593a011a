/**
 * The messages of an event store server that a process receives or sends for each event, between bytes and objects.
 *
 * The client's generated code makes an object of every part of a message, and reads numbers as text: it took half of the
 * CPU of a process that follows the log. Numbers of fields: `streams.proto` and `shared.proto` of the server.
 */
import protobuf from 'protobufjs/minimal.js';
import type { PreparedAppend } from '../event-log/prepared.ts';

type Reader = protobuf.Reader;
type Writer = protobuf.Writer;

/** An event as the server sends it. */
export interface Recorded {
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  /** Commit position. */
  readonly position: number;
  readonly type: string;
  readonly contentType: string;
  readonly data: Buffer;
  readonly meta: Buffer;
}

/** A message of a read or a subscription. */
export type ReadMessage =
  | { readonly kind: 'event'; readonly event: Recorded }
  | { readonly kind: 'confirmed' | 'caught up' | 'fell behind' | 'other' }
  | { readonly kind: 'checkpoint'; readonly position: number };

/** The server's response to an append. */
export interface AppendMessage {
  readonly correlationId: string;
  /** Undefined: the server refused it. `position` is missing for an event that the server is still indexing. */
  readonly stored: { readonly revision: number; readonly position: number | undefined } | undefined;
}

const NOTHING: Buffer = Buffer.alloc(0);
const OTHER: ReadMessage = { kind: 'other' };

/** Calls `field` with the number of each field of a message; it returns false for one that it does not read. */
function eachField(reader: Reader, end: number, field: (number: number) => boolean): void {
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (!field(tag >>> 3)) reader.skipType(tag & 7);
  }
}

/** The end of the message that begins here. */
const endOf = (reader: Reader): number => reader.uint32() + reader.pos;

/** Exact up to 2^53. */
const numberOf = (value: number | protobuf.Long): number =>
  typeof value === 'number' ? value : (value.high >>> 0) * 2 ** 32 + (value.low >>> 0);

const hexOf = (word: number): string => (word >>> 0).toString(16).padStart(8, '0');

/** A UUID is a text, or two numbers of 64 bits. */
function readUuid(reader: Reader): string {
  let hex = '';
  let text = '';
  eachField(reader, endOf(reader), (number) => {
    if (number === 1) {
      eachField(reader, endOf(reader), () => {
        const { high, low } = reader.int64() as protobuf.Long;
        hex += hexOf(high) + hexOf(low);
        return true;
      });
    } else if (number === 2) text = reader.string().toLowerCase();
    else return false;
    return true;
  });
  return text || hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function readRecorded(reader: Reader): Recorded {
  let [id, stream, type, contentType] = ['', '', '', ''];
  let [revision, position] = [0, 0];
  let data = NOTHING;
  let meta = NOTHING;
  eachField(reader, endOf(reader), (number) => {
    switch (number) {
      case 1:
        id = readUuid(reader);
        return true;
      case 2:
        eachField(reader, endOf(reader), (inner) => {
          if (inner !== 3) return false;
          stream = reader.string();
          return true;
        });
        return true;
      case 3:
        revision = numberOf(reader.uint64());
        return true;
      case 5:
        position = numberOf(reader.uint64());
        return true;
      case 6: {
        const [key, value] = readEntry(reader);
        if (key === 'type') type = value;
        else if (key === 'content-type') contentType = value;
        return true;
      }
      case 7:
        meta = reader.bytes() as Buffer;
        return true;
      case 8:
        data = reader.bytes() as Buffer;
        return true;
      default:
        return false;
    }
  });
  return { id, stream, revision, position, type, contentType, data, meta };
}

function readEntry(reader: Reader): [key: string, value: string] {
  let [key, value] = ['', ''];
  eachField(reader, endOf(reader), (number) => {
    if (number === 1) key = reader.string();
    else if (number === 2) value = reader.string();
    else return false;
    return true;
  });
  return [key, value];
}

/** @throws Error for bytes that are no such message */
export function readMessage(bytes: Buffer): ReadMessage {
  const reader = protobuf.Reader.create(bytes);
  let message = OTHER;
  eachField(reader, bytes.length, (number) => {
    switch (number) {
      case 1: {
        let event: Recorded | undefined;
        eachField(reader, endOf(reader), (inner) => {
          if (inner !== 1) return false;
          event = readRecorded(reader);
          return true;
        });
        if (event) message = { kind: 'event', event };
        return true;
      }
      case 2:
        message = { kind: 'confirmed' };
        return false;
      case 3:
        message = { kind: 'checkpoint', position: firstNumber(reader) ?? 0 };
        return true;
      case 8:
        message = { kind: 'caught up' };
        return false;
      case 9:
        message = { kind: 'fell behind' };
        return false;
      default:
        return false;
    }
  });
  return message;
}

/** Field 1 of a message, a number. */
function firstNumber(reader: Reader): number | undefined {
  let value: number | undefined;
  eachField(reader, endOf(reader), (number) => {
    if (number !== 1) return false;
    value = numberOf(reader.uint64());
    return true;
  });
  return value;
}

/** @throws as `readMessage` */
export function readResponse(bytes: Buffer): AppendMessage {
  const reader = protobuf.Reader.create(bytes);
  let correlationId = '';
  let stored: AppendMessage['stored'];
  eachField(reader, bytes.length, (number) => {
    if (number === 1) correlationId = readUuid(reader);
    else if (number === 3) {
      let revision = 0;
      let position: number | undefined;
      eachField(reader, endOf(reader), (inner) => {
        if (inner === 1) revision = numberOf(reader.uint64());
        else if (inner === 3) position = firstNumber(reader) ?? 0;
        else return false;
        return true;
      });
      stored = { revision, position };
    } else return false;
    return true;
  });
  return { correlationId, stored };
}

/** The tag of a field that holds a message, a text or bytes. */
const within = (writer: Writer, number: number): Writer => writer.uint32((number << 3) | 2);

const writeUuid = (writer: Writer, number: number, id: string): Writer =>
  within(within(writer, number).fork(), 2).string(id).ldelim();

function writeEntry(writer: Writer, number: number, key: string, value: string): void {
  within(within(within(writer, number).fork(), 1).string(key), 2)
    .string(value)
    .ldelim();
}

/** @param stream with the prefix of the log */
export function appendMessage(correlationId: string, stream: string, append: PreparedAppend): Buffer {
  const writer = protobuf.Writer.create();
  writeUuid(writer, 1, correlationId);
  within(writer, 2).fork();
  within(within(writer, 1).fork(), 3).string(stream).ldelim();
  // No deadline, because the server would compare it with its own clock.
  if (append.expected === 'any') within(writer, 4).fork().ldelim();
  else if (append.expected === 'none') within(writer, 3).fork().ldelim();
  else writer.uint32(2 << 3).uint64(append.expected);
  writer.ldelim();
  for (const event of append.events) {
    within(writer, 3).fork();
    writeUuid(writer, 1, event.id);
    writeEntry(writer, 2, 'type', event.type);
    writeEntry(writer, 2, 'content-type', 'application/json');
    within(writer, 3).string(event.meta);
    within(writer, 4).string(event.data);
    writer.ldelim();
  }
  return writer
    .uint32(4 << 3)
    .bool(true)
    .finish() as Buffer;
}
