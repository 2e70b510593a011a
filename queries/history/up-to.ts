/** The index of the log as of its end at one moment, so that a response shows one position however many events follow. */
import type { Position } from '../../shared/ports/event-log.ts';
import type { LogIndex } from '../../shared/ports/history/events.ts';

/** @returns the index without events after the last one that the log has now, and the position of that one */
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
