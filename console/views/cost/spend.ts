/**
 * The cost of one day by any key: the sums of all time at its end minus those at its beginning. Both are reads of the
 * past, so the result is exact and does not change.
 */
import type { TokenStats } from '../../client/api-types.ts';
import { timeOfMoment, useAsOf } from '../../client/moment.ts';
import { type Read, useRead } from '../../client/reads.ts';
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
const momentOf = (ms: number) => utc(ms);

export const NONE = { totalCost: 0, estimatedCost: 0, totalTokens: 0, requestCount: 0 };

/** Cost per name between three moments, the largest change first. */
export function changesOf(first: Sums, second: Sums, third: Sums): Change[] {
  return Object.keys(third)
    .map((name) => {
      const [a, b, c] = [first[name] ?? NONE, second[name] ?? NONE, third[name] ?? NONE];
      return {
        name,
        // Sums are rounded to a billionth; their difference must not show smaller digits.
        cost: round(c.totalCost - b.totalCost),
        estimated: round(c.estimatedCost - b.estimatedCost),
        before: round(b.totalCost - a.totalCost),
        requests: c.requestCount - b.requestCount,
        requestsBefore: b.requestCount - a.requestCount,
        tokens: c.totalTokens - b.totalTokens,
      };
    })
    .filter(
      ({ cost, before, requests, requestsBefore }) =>
        cost !== 0 || before !== 0 || requests !== 0 || requestsBefore !== 0,
    )
    .sort((a, b) => Math.abs(b.cost - b.before) - Math.abs(a.cost - a.before));
}

const round = (n: number): number => Math.round(n * 1e9) / 1e9;

type Action = 'agent-costs' | 'stats' | 'task-costs';

export interface Days<T> {
  /** At the end of the day, at its beginning, and at the beginning of the previous day. */
  readonly at: readonly [T | undefined, T | undefined, T | undefined];
  readonly read: Read<unknown>;
  readonly ready: boolean;
}

/** Sums of all time at the three moments around a day. */
export function useDays<T>(action: Action, day: string, is: (data: unknown) => data is T): Days<T> {
  const shown = timeOfMoment(useAsOf()) ?? Date.now();
  const asked = { query: { action, timeframe: 'all' } };
  const start = startOf(day);
  const end = start + DAY;
  const third = useRead('GET /api/tokens', asked, {
    at: end > shown ? undefined : momentOf(end),
    kinds: ['activity.'],
  });
  const second = useRead('GET /api/tokens', asked, { at: momentOf(start) });
  const first = useRead('GET /api/tokens', asked, { at: momentOf(start - DAY) });
  const all = [third, second, first] as const;
  // Before the first event the sums are empty.
  const early = (one: Read<unknown>) => one.error?.status === 400;
  const dataOf = (one: Read<unknown>) => (!one.isOld && is(one.data) ? one.data : undefined);
  return {
    at: [dataOf(third), dataOf(second), dataOf(first)],
    read: all.find((one) => one.error && !early(one)) ?? third,
    ready: all.every((one) => (one.data !== undefined && !one.isOld) || early(one)),
  };
}
