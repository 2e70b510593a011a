/** The number of events in each part of a time span. */
import type { TimelineQuery, TimelineResponse } from '../../shared/contract/history/timeline.ts';
import { invalid } from '../../shared/errors.ts';
import type { LogIndex } from '../../shared/ports/history/events.ts';
import { seconds } from '../../shared/time.ts';

/**
 * @param now Unix milliseconds
 * @throws AppError 400 if the span ends before it begins
 */
export async function logTimeline(
  index: LogIndex,
  { since, until, bins }: TimelineQuery,
  now: number,
): Promise<TimelineResponse> {
  const ends = await index.ends();
  const to = until ?? now;
  const from = since ?? Math.min(ends?.first.at ?? to, to);
  if (from > to) throw invalid('since: must not be after until');
  const width = (to - from) / bins;
  const starts = Array.from({ length: bins }, (_, n) => from + n * width);
  // Each part includes its beginning; an event at the end of the span belongs to the last part.
  const edges = [...starts.map((at) => Math.ceil(at) - 1), Math.floor(to)];
  const found = await index.countsUpTo(edges);
  const parts = starts.map((at, n) => {
    const [before, after] = [found[n], found[n + 1]];
    return {
      at: seconds(at),
      count: (after?.count ?? 0) - (before?.count ?? 0),
      position: after?.position ?? 0,
    };
  });
  return { since: seconds(from), until: seconds(to), first: ends ? seconds(ends.first.at) : null, bins: parts };
}
