/**
 * What an append may hold: checked here for every adapter, before its store is called. Stores are forgiving in the wrong
 * places, and each in others: `undefined` is dropped, a Date becomes a string, an empty list "succeeds", and to
 * EventStoreDB a call of many megabytes breaks the connection of every other append.
 */
import { EventTooLargeError } from '../../shared/errors.ts';
import { type Expectation, MAX_APPEND_BYTES, MAX_APPEND_EVENTS, type NewEvent } from '../../shared/ports/event-log.ts';

/** An event and its JSON, made once: it is measured, written and remembered by its size. */
export interface PreparedEvent {
  /** In lower case, as every store gives it back. */
  readonly id: string;
  readonly type: string;
  /** JSON. */
  readonly data: string;
  /** JSON. */
  readonly meta: string;
  /** What was handed in; its id as above. */
  readonly event: NewEvent;
}

export interface PreparedAppend {
  readonly stream: string;
  readonly events: readonly PreparedEvent[];
  readonly expected: Expectation;
  /** Bytes of JSON in UTF-8. */
  readonly bytes: number;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Deeper data is refused: not every store and client parses it safely. */
const MAX_DEPTH = 200;

/**
 * Serialises an append. The bytes are those of this moment: changing the objects later changes nothing.
 *
 * @throws EventTooLargeError over MAX_APPEND_BYTES or MAX_APPEND_EVENTS
 * @throws Error for an empty list, a reserved or malformed name, an id that is no UUID or stands twice, an expectation
 *   that is none, or data that is not plain JSON
 */
export function prepareAppend(stream: string, events: readonly NewEvent[], expected: Expectation): PreparedAppend {
  checkName('stream', stream);
  if (events.length === 0) throw new Error(`append to ${stream}: there are no events`);
  if (typeof expected === 'number' && !(Number.isSafeInteger(expected) && expected >= 0)) {
    throw new Error(`append to ${stream}: ${expected} is no revision; expected 'any', 'none' or a whole number from 0`);
  }
  if (events.length > MAX_APPEND_EVENTS) {
    throw new EventTooLargeError(`${events.length} events in one append; at most ${MAX_APPEND_EVENTS} fit`, 0);
  }
  const ids = new Set<string>();
  let bytes = 0;
  const prepared = events.map((event) => {
    checkName('event type', event.type);
    const id = event.id.toLowerCase();
    if (!UUID.test(id)) throw new Error(`append to ${stream}: event id "${event.id}" is no UUID`);
    if (ids.has(id)) throw new Error(`append to ${stream}: event id ${event.id} stands twice`);
    ids.add(id);
    const data = serialise(event.data, `${event.type}.data`);
    const meta = serialise(event.meta, `${event.type}.meta`);
    bytes += Buffer.byteLength(data) + Buffer.byteLength(meta);
    return { id, type: event.type, data, meta, event: id === event.id ? event : { ...event, id } };
  });
  if (bytes > MAX_APPEND_BYTES) {
    throw new EventTooLargeError(
      `the events of one append have ${bytes} bytes; at most ${MAX_APPEND_BYTES} fit`,
      bytes,
    );
  }
  return { stream, events: prepared, expected, bytes };
}

function checkName(what: string, name: string): void {
  if (name === '' || name.startsWith('$')) throw new Error(`${what} "${name}" is empty or reserved`);
  // Half a surrogate pair has no UTF-8: two such names would become one in the store.
  if (/\p{Surrogate}/u.test(name)) throw new Error(`${what} "${name}" is not well-formed Unicode`);
  if (name.includes('\0')) throw new Error(`${what} "${name}" holds the character U+0000`);
}

function serialise(value: Readonly<Record<string, unknown>>, name: string): string {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Error(`${name} is no JSON object`);
  const finding = notJson(value, 0);
  if (finding !== undefined) throw new Error(`${name}${finding}`);
  return JSON.stringify(value);
}

/** Where and why a value is not plain JSON: `.path[0] is …`, or undefined. The path is put together only when needed. */
function notJson(value: unknown, depth: number): string | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : ` is ${value}, which JSON does not have`;
    case 'object':
      break;
    default:
      return ` is ${typeof value}, which JSON does not have`;
  }
  if (value === null) return undefined;
  if (depth > MAX_DEPTH) return ` is nested deeper than ${MAX_DEPTH} levels, or in itself`;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const finding = notJson(value[index], depth + 1);
      if (finding !== undefined) return `[${index}]${finding}`;
    }
    return undefined;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return ` is a ${value.constructor?.name ?? 'class instance'}, not a plain object`;
  }
  for (const key in value) {
    const finding = notJson((value as Record<string, unknown>)[key], depth + 1);
    if (finding !== undefined) return `.${key}${finding}`;
  }
  return undefined;
}
