/** The source of the hub's events. */
import type { EventStore } from '../../shared/event-store.ts';
import { BEGINNING, type EventLog, type LoggedEvent, type Position } from '../../shared/ports/event-log.ts';

export interface StreamSource extends Pick<EventStore, 'decode'>, Pick<EventLog, 'head' | 'follow'> {
  /**
   * One page of the events after a position: about `maxBytes` of JSON at most, or a single larger event. Empty at the end
   * of the log.
   *
   * @throws UnknownPositionError
   */
  page(after: Position, maxBytes: number): Promise<readonly LoggedEvent[]>;
  /** Events of one stream from a revision on. */
  stream(name: string, from: number): AsyncIterable<readonly LoggedEvent[]>;
  /**
   * @throws UnknownPositionError when the log does not have this position
   * @throws AppError 409 when the next event is archived and its bundle is not there
   */
  checkPosition(position: Position): Promise<void>;
  /** The position of the event before this one. */
  positionBefore(position: Position): Promise<Position>;
}

/** The event store as a source. Each `follow` adds a follower to the store; a process shares its own reader instead. */
export function sourceOf(
  store: Pick<EventStore, 'decode'> & { log: Pick<EventLog, 'head' | 'follow' | 'readAll' | 'readStream'> },
) {
  const { log } = store;
  const source: StreamSource = {
    decode: (event, once) => store.decode(event, once),
    head: () => log.head(),
    follow: (options) => log.follow(options),
    async page(after, maxBytes) {
      for await (const events of log.readAll({ from: after, maxBytes })) return events;
      return [];
    },
    stream: (name, from) => log.readStream(name, { from }),
    async checkPosition(position) {
      // Reads an event as well: it may be in a bundle that is not there.
      for await (const _ of log.readAll({ from: position, limit: 1 })) return;
    },
    async positionBefore(position) {
      for await (const [event] of log.readAll({ direction: 'backwards', from: position, limit: 1 })) {
        if (event) return event.position;
      }
      return BEGINNING;
    },
  };
  return source;
}
