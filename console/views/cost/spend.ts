/** The cost of one day by any key: everything since its beginning, minus everything since the next day's. */
import type { TokenStats } from '../../client/api-types.ts';
import { type Read, useRead, useShownTime } from '../../client/reads.ts';
import { utc } from '../../parts/format.ts';

const DAY = 86_400_000;

export type Sums = Readonly<
  Record<string, Pick<TokenStats, 'totalCost' | 'estimatedCost' | 'totalTokens' | 'requestCount'>>
>;

export interface Change {
  readonly name: string;
  readonly cost: number;
  /** The part of `cost` that was priced by default. */
  readonly estimated: number;
  readonly before: number;
  readonly requests: number;
  readonly requestsBefore: number;
  readonly tokens: number;
}

/** Days are UTC days, as in the sums of the service. */
export const dayOf = (ms: number): string => utc(ms).slice(0, 10);
export const startOf = (day: string): number => Date.parse(`${day}T00:00:00Z`);
export const dayBefore = (day: string): string => dayOf(startOf(day) - DAY);

export const NONE = { totalCost: 0, estimatedCost: 0, totalTokens: 0, requestCount: 0 };

/**
 * What each name cost on a day and on the day before, the largest change first.
 *
 * @param before sums of everything since the beginning of the day before; `day`: of the day; `next`: of the next day
 */
export function changesOf(before: Sums = {}, day: Sums = {}, next: Sums = {}): Change[] {
  return Object.keys(before)
    .map((name) => {
      const [a, b, c] = [before[name] ?? NONE, day[name] ?? NONE, next[name] ?? NONE];
      return {
        name,
        // Sums are rounded to a billionth; their difference must not show smaller digits.
        cost: round(b.totalCost - c.totalCost),
        estimated: round(b.estimatedCost - c.estimatedCost),
        before: round(a.totalCost - b.totalCost),
        requests: b.requestCount - c.requestCount,
        requestsBefore: a.requestCount - b.requestCount,
        tokens: b.totalTokens - c.totalTokens,
      };
    })
    .filter(
      ({ cost, before: earlier, requests, requestsBefore }) =>
        cost !== 0 || earlier !== 0 || requests !== 0 || requestsBefore !== 0,
    )
    .sort((a, b) => Math.abs(b.cost - b.before) - Math.abs(a.cost - a.before));
}

const round = (n: number): number => Math.round(n * 1e9) / 1e9;

type Action = 'agent-costs' | 'stats' | 'task-costs';

export interface Days<T> {
  /** Sums of everything since the beginning of the day before, of the day, and of the next day. */
  readonly since: readonly [before: T | undefined, day: T | undefined, next: T | undefined];
  readonly read: Read<unknown>;
  readonly ready: boolean;
}

/** The sums from which a day and the day before are calculated. A report counts on the day of its own time. */
export function useDays<T>(action: Action, day: string, is: (data: unknown) => data is T): Days<T> {
  const shown = useShownTime();
  const start = startOf(day);
  const options = { kinds: ['activity.'] };
  const asked = (from: number) => ({ query: { action, timeframe: dayOf(from) } });
  const before = useRead('GET /api/tokens', asked(start - DAY), options);
  const own = useRead('GET /api/tokens', asked(start), options);
  const isLast = start + DAY > shown;
  const next = useRead('GET /api/tokens', isLast ? undefined : asked(start + DAY), options);
  const all = [before, own, ...(isLast ? [] : [next])];
  const dataOf = (one: Read<unknown>) => (!one.isOld && is(one.data) ? one.data : undefined);
  return {
    since: [dataOf(before), dataOf(own), isLast ? undefined : dataOf(next)],
    read: all.find((one) => one.error) ?? own,
    ready: all.every((one) => one.data !== undefined && !one.isOld),
  };
}
