/**
 * What an append may contain, checked here for every adapter before its store is called. Each store is lenient in other
 * places: `undefined` is dropped, a Date becomes a string, an empty list "succeeds", and a call of many megabytes to
 * EventStoreDB breaks the connection that all other appends use.
 */
import { EventTooLargeError } from '../../shared/errors.ts';
import { type Expectation, MAX_APPEND_BYTES, MAX_APPEND_EVENTS, type NewEvent } from '../../shared/ports/event-log.ts';

/** An event and its JSON, serialised once for measuring, writing and caching. */
export interface PreparedEvent {
  /** In lower case, as every store returns it. */
  readonly id: string;
  readonly type: string;
  /** JSON. */
  readonly data: string;
  /** JSON. */
  readonly meta: string;
  /** The event as passed in, but with the id above. */
  readonly event: NewEvent;
}

export interface PreparedAppend {
  readonly stream: string;
  readonly events: readonly PreparedEvent[];
  readonly expected: Expectation;
  /** Size of the JSON in UTF-8, bytes. */
  readonly bytes: number;
  /** Once aborted, nothing more is sent. */
  readonly unless: AbortSignal | undefined;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Most levels of nesting; not every store and client parses deeper data safely. */
const MAX_DEPTH = 200;

/**
 * Serialises an append. Changing the objects afterwards has no effect on it.
 *
 * @throws EventTooLargeError over MAX_APPEND_BYTES or MAX_APPEND_EVENTS
 * @throws Error for an empty list, a reserved or malformed name, an id that is not a UUID or occurs twice, an invalid
 *   expectation, or data that is not plain JSON
 */
export function prepareAppend(
  stream: string,
  events: readonly NewEvent[],
  expected: Expectation,
  unless?: AbortSignal,
): PreparedAppend {
  checkName('stream', stream);
  if (events.length === 0) throw new Error(`append to ${stream}: the list of events is empty`);
  if (typeof expected === 'number' && !(Number.isSafeInteger(expected) && expected >= 0)) {
    throw new Error(
      `append to ${stream}: ${expected} is not a revision; expected 'any', 'none' or a whole number from 0`,
    );
  }
  if (events.length > MAX_APPEND_EVENTS) {
    throw new EventTooLargeError(`${events.length} events in one append; the limit is ${MAX_APPEND_EVENTS}`, 0);
  }
  const ids = new Set<string>();
  let bytes = 0;
  const prepared = events.map((event) => {
    checkName('event type', event.type);
    const id = event.id.toLowerCase();
    if (!UUID.test(id)) throw new Error(`append to ${stream}: event id "${event.id}" is not a UUID`);
    if (ids.has(id)) throw new Error(`append to ${stream}: event id ${event.id} occurs twice`);
    ids.add(id);
    const data = serialise(event.data, `${event.type}.data`);
    const meta = serialise(event.meta, `${event.type}.meta`);
    bytes += Buffer.byteLength(data) + Buffer.byteLength(meta);
    return { id, type: event.type, data, meta, event: id === event.id ? event : { ...event, id } };
  });
  if (bytes > MAX_APPEND_BYTES) {
    throw new EventTooLargeError(`${bytes} bytes of events in one append; the limit is ${MAX_APPEND_BYTES}`, bytes);
  }
  return { stream, events: prepared, expected, bytes, unless };
}

function checkName(what: string, name: string): void {
  if (name === '' || name.startsWith('$')) throw new Error(`${what} "${name}" is empty or reserved`);
  // Lone surrogates have no UTF-8 encoding, so two such names could become the same name in the store.
  if (/\p{Surrogate}/u.test(name)) throw new Error(`${what} "${name}" is not well-formed Unicode`);
  if (name.includes('\0')) throw new Error(`${what} "${name}" holds the character U+0000`);
}

function serialise(value: Readonly<Record<string, unknown>>, name: string): string {
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw new Error(`${name} is not a JSON object`);
  const finding = notJson(value, 0);
  if (finding !== undefined) throw new Error(`${name}${finding}`);
  return JSON.stringify(value);
}

/** Where and why a value is not plain JSON: `.path[0] is …`, or undefined. The path is built only when needed. */
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
  if (depth > MAX_DEPTH) return ` is nested deeper than ${MAX_DEPTH} levels, or contains itself`;
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
