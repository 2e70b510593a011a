/** The number of events along the register, and the marks on it. */
import { useMemo } from 'preact/hooks';
import { useRead } from '../client/reads.ts';
import { useRights } from '../client/session.ts';
import { utc } from '../parts/format.ts';

const HOUR = 3_600_000;
/** Hours; `all`: since the first event. */
export const RANGES = { '1h': 1, '24h': 24, '7d': 168, '30d': 720, '1y': 8_760, all: undefined } as const;
export type Range = keyof typeof RANGES;
export const rangeOf = (text: string | null): Range => (text !== null && text in RANGES ? (text as Range) : '7d');

const BINS = 160;
/** The strip is read again at most this often, milliseconds. */
const PAUSE_MS = 15_000;
/** Callers who may not read the whole log see their activities, of one year at most. */
const MOST_HOURS = 8_760;
const MOST_ALERTS = 1_000;

export interface Strip {
  /** Unix milliseconds. */
  readonly start: number;
  readonly end: number;
  /** Events per bin, from `start` to `end`. */
  readonly bins: readonly number[];
  /** Whether the counts cover the whole log, or only the events that the caller sees. */
  readonly isWhole: boolean;
}

/** Events per bin, from the hours of the timeline. @param timeline with Unix seconds */
export function densityOf(
  timeline: readonly { readonly timestamp: number; readonly count: number }[],
  start: number,
  end: number,
  bins: number,
): number[] {
  const sums = new Array<number>(bins).fill(0);
  const width = (end - start) / bins;
  for (const { timestamp, count: events } of timeline) {
    // An hour may cover several bins, or be a part of one.
    const from = Math.max(timestamp * 1000, start);
    const to = Math.min(timestamp * 1000 + HOUR, end);
    if (to <= from) continue;
    const first = Math.floor((from - start) / width);
    const last = Math.min(bins - 1, Math.floor((to - 1 - start) / width));
    for (let bin = first; bin <= last; bin++) sums[bin] = (sums[bin] ?? 0) + events / (last - first + 1);
  }
  return sums;
}

/** Beginning of a range, rounded to the minute: it is part of a URL that is read repeatedly. */
function beginningOf(range: Range): string | undefined {
  const hours = RANGES[range];
  return hours === undefined ? undefined : utc(Math.floor((Date.now() - hours * HOUR) / 60_000) * 60_000);
}

export function useStrip(range: Range): Strip {
  const { ofDeployment } = useRights();
  const since = useMemo(() => beginningOf(range), [range]);
  const options = { at: null, kinds: ['activity.'], pause: PAUSE_MS };
  const log = useRead(
    'GET /api/history/timeline',
    ofDeployment ? { query: { since, bins: BINS } } : undefined,
    options,
  );
  const hours = RANGES[range] ?? MOST_HOURS;
  const stats = useRead('GET /api/activities', ofDeployment ? undefined : { query: { stats: '1', hours } }, options);
  return useMemo(() => {
    if (log.data) {
      const { since: start, until, bins } = log.data;
      const counts = bins.map(({ count }) => count);
      // A range shorter than a second would have no length.
      return { start: start * 1000, end: Math.max(until, start + 1) * 1000, bins: counts, isWhole: true };
    }
    const timeline = stats.data && 'timeline' in stats.data ? stats.data.timeline : [];
    const end = Date.now();
    const start = range === 'all' && timeline[0] ? timeline[0].timestamp * 1000 : end - hours * HOUR;
    return { start, end, bins: densityOf(timeline, start, end, BINS), isWhole: ofDeployment };
  }, [log.data, stats.data, range, ofDeployment]);
}

export interface AlertMark {
  readonly id: string;
  readonly name: string;
  /** Unix milliseconds. */
  readonly at: number;
  /** The value of `open` for its drawer. */
  readonly open: string;
}

/** Data of AlertRuleTriggered in the log. */
const nameOf = ({ name }: Readonly<Record<string, unknown>>): string => (typeof name === 'string' ? name : 'a rule');

/** When alert rules triggered: every time for callers who may read the log, the last time per rule for others. */
export function useAlertMarks(range: Range): readonly AlertMark[] {
  const { ofDeployment } = useRights();
  const since = useMemo(() => beginningOf(range), [range]);
  const options = { at: null, kinds: ['alert.'] };
  const events = useRead(
    'GET /api/history/events',
    ofDeployment ? { query: { type: 'AlertRuleTriggered', since, limit: MOST_ALERTS } } : undefined,
    options,
  );
  const rules = useRead('GET /api/alerts', ofDeployment ? undefined : {}, options);
  if (events.data)
    return events.data.events.map(({ id, at, data }) => ({
      id,
      name: nameOf(data),
      at: at * 1000,
      open: `event:${id}`,
    }));
  return (rules.data?.rules ?? []).flatMap(({ id, name, last_triggered_at }) =>
    last_triggered_at === null ? [] : [{ id: String(id), name, at: last_triggered_at * 1000, open: `alert:${id}` }],
  );
}
