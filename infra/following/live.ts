/** The reader's events for consumers without a checkpoint, such as the hub of the live streams. */
import type { Followed, FollowOptions } from '../../shared/ports/event-log.ts';
import { Inbox } from './inbox.ts';
import type { LogReader, Member } from './reader.ts';

/**
 * Like `EventLog.follow`, but without another subscription to the store: events before the reader's position are read
 * from the log, later ones come from memory. The consumer may be slow.
 *
 * @throws UnknownPositionError as `EventLog.follow` does; errors of reading the log when it is unavailable
 */
export async function* followLive(reader: LogReader, { after, signal }: FollowOptions): AsyncGenerator<Followed> {
  const inbox = new Inbox();
  let position = after;
  let failure: { readonly reason: unknown } | undefined;
  let wake = () => {};
  const member: Member = {
    types: undefined,
    take(events) {
      inbox.add(events);
      wake();
    },
    lost(reason) {
      failure = { reason };
      wake();
    },
  };
  const woken = () => wake();
  signal.addEventListener('abort', woken);
  try {
    await reader.started(signal);
    while (!signal.aborted) {
      inbox.clear();
      const leave = reader.join(member);
      try {
        const joinedAt = reader.position;
        if (position !== joinedAt) {
          for await (const events of reader.log.readAll({ from: position })) {
            if (signal.aborted) return;
            position = events.at(-1)?.position ?? position;
            yield { events, position, caughtUp: false };
          }
          position = Math.max(position, joinedAt);
        }
        while (!signal.aborted && !inbox.overflowed) {
          if (failure) throw failure.reason;
          const events = inbox.take(position);
          if (events.length > 0) {
            position = events.at(-1)?.position ?? position;
            yield { events, position, caughtUp: inbox.isEmpty && !inbox.overflowed };
          } else if (inbox.isEmpty) {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
        }
      } finally {
        leave();
      }
    }
  } finally {
    signal.removeEventListener('abort', woken);
  }
}
