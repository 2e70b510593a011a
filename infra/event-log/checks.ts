/** What every adapter refuses before it calls its store. */
import { EventTooLargeError } from '../../shared/errors.ts';
import { MAX_APPEND_BYTES, MAX_APPEND_EVENTS, type NewEvent } from '../../shared/ports/event-log.ts';

/** An event's JSON, made once: it is measured, written and remembered by its size. */
export interface Serialized {
  readonly data: string;
  readonly meta: string;
}

/**
 * The JSON of what an append carries, and its bytes.
 *
 * @throws EventTooLargeError over the port's limits
 * @throws Error for an empty list, a repeated id, a name that stores reserve, or data that is no JSON
 */
export function serialized(
  stream: string,
  events: readonly NewEvent[],
): { readonly texts: readonly Serialized[]; readonly bytes: number } {
  if (events.length === 0) throw new Error(`append to ${stream}: there are no events`);
  if (stream === '' || stream.startsWith('$')) throw new Error(`stream name "${stream}" is empty or reserved`);
  if (events.length > MAX_APPEND_EVENTS) {
    throw new EventTooLargeError(`${events.length} events in one append; at most ${MAX_APPEND_EVENTS} fit`, 0);
  }
  let bytes = 0;
  const ids = new Set<string>();
  const texts: Serialized[] = [];
  for (const event of events) {
    if (event.type === '' || event.type.startsWith('$'))
      throw new Error(`event type "${event.type}" is empty or reserved`);
    if (ids.has(event.id)) throw new Error(`append to ${stream}: event id ${event.id} stands twice`);
    ids.add(event.id);
    const text = { data: JSON.stringify(event.data), meta: JSON.stringify(event.meta) };
    bytes += Buffer.byteLength(text.data) + Buffer.byteLength(text.meta);
    texts.push(text);
  }
  if (bytes > MAX_APPEND_BYTES) {
    throw new EventTooLargeError(
      `the events of one append have ${bytes} bytes; at most ${MAX_APPEND_BYTES} fit`,
      bytes,
    );
  }
  return { texts, bytes };
}
