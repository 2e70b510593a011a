/** Events of the log, as they are stored. */
import type { HistoryEvent, HistoryEventsQuery } from '../../shared/contract/history/events.ts';
import { invalid, notFound } from '../../shared/errors.ts';
import type { EventStore } from '../../shared/event-store.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import type { LogEntry, LogIndex } from '../../shared/ports/history/events.ts';
import { seconds } from '../../shared/time.ts';

export interface HistoryReads {
  readonly index: LogIndex;
  readonly store: Pick<EventStore, 'log' | 'reveal'>;
}

/** The fields of an event that are shown without decoding it. */
export const outlineOf = ({ id, position, number, type, stream, revision, at, actor }: LogEntry) => ({
  id,
  position,
  index: number,
  type,
  stream,
  revision,
  at: seconds(at),
  actor,
});

/**
 * The events, up to the number that is read at once, at least one.
 *
 * @param open personal fields are readable
 */
export async function recordsOf(
  { index, store }: HistoryReads,
  entries: readonly LogEntry[],
  open: boolean,
): Promise<HistoryEvent[]> {
  const events = await index.read(entries);
  return Promise.all(
    events.map(async (event, n) => {
      const { data, meta } = open ? await store.reveal(event) : event;
      return { ...outlineOf(entries[n] as LogEntry), data, meta };
    }),
  );
}

/** @throws AppError 400 for a position that the log does not have yet */
export async function listHistoryEvents(
  reads: HistoryReads,
  { open, limit, ...filter }: HistoryEventsQuery,
): Promise<{ readonly events: HistoryEvent[]; readonly next_after: number | null }> {
  const { index, store } = reads;
  await index.settled();
  if (filter.after !== undefined) {
    const head = await store.log.head();
    if (filter.after > head) throw invalid(`after: must be a position from 0 to ${head}, the end of the log`);
  }
  const found = await index.list(filter, limit + 1);
  const events = await recordsOf(reads, found.slice(0, limit), open);
  const last = events.at(-1);
  return { events, next_after: last && found.length > events.length ? last.position : null };
}

/** @throws AppError 404 */
export async function historyEvent(
  reads: HistoryReads,
  id: string,
  open: boolean,
): Promise<{ readonly entry: LogEntry; readonly event: HistoryEvent }> {
  await reads.index.settled();
  const entry = await reads.index.find(id);
  const [event] = entry ? await recordsOf(reads, [entry], open) : [];
  if (!entry || !event) throw notFound('Event');
  return { entry, event };
}

/**
 * The index of the log as of its end at one moment, so that a response shows one position.
 *
 * @returns the index without events after the last one that the log has now, and the position of that one
 */
export async function indexUpToNow(
  index: LogIndex,
): Promise<{ readonly index: LogIndex; readonly position: Position }> {
  const [all = { count: 0, position: 0 }] = await index.countsUpTo([Number.MAX_SAFE_INTEGER]);
  const { count, position } = all;
  const shown = <E extends { readonly position: Position }>(entries: readonly E[]) =>
    entries.filter((entry) => entry.position <= position);
  const limited: LogIndex = {
    ...index,
    find: async (id) => shown([await index.find(id)].filter((entry) => entry !== undefined))[0],
    list: async (...asked) => shown(await index.list(...asked)),
    causedBy: async (...asked) => shown(await index.causedBy(...asked)),
    countsUpTo: async (times) =>
      (await index.countsUpTo(times)).map((one) => (one.count > count ? { count, position } : one)),
  };
  return { index: limited, position };
}
