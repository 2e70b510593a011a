/**
 * Hours, days, dekads and months of UTC: the buckets that read models add up in. A month has three dekads, which begin on
 * its 1st, 11th and 21st day. Times are Unix milliseconds.
 */

export const UNITS = ['hour', 'day', 'dekad', 'month'] as const;
export type Unit = (typeof UNITS)[number];

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
/** Days of a dekad; the last one of a month has what is left. */
const DEKAD = 10;
const DEKADS = 3;

/** The dekad of a day of the month, from 0. */
const dekadOf = (date: Date): number => Math.min(DEKADS - 1, Math.floor((date.getUTCDate() - 1) / DEKAD));

/** The beginning of the bucket that a moment is in. */
export function startOf(unit: Unit, at: number): number {
  if (unit === 'hour') return at - (at % HOUR_MS);
  if (unit === 'day') return at - (at % DAY_MS);
  const date = new Date(at);
  const day = unit === 'month' ? 1 : 1 + dekadOf(date) * DEKAD;
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), day);
}

/** The beginning of the first bucket that begins at or after a moment. */
export function firstFrom(unit: Unit, at: number): number {
  const start = startOf(unit, at);
  if (start === at) return at;
  if (unit === 'hour') return start + HOUR_MS;
  if (unit === 'day') return start + DAY_MS;
  const date = new Date(at);
  const next = unit === 'month' ? DEKADS : dekadOf(date) + 1;
  return next < DEKADS
    ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1 + next * DEKAD)
    : Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}

/** What a window is made of: whole buckets, and what lies beside them. Beginnings belong to a span, ends do not. */
export interface Spans {
  /** Of the longest units that fit, so that few buckets are read. */
  readonly buckets: readonly { readonly unit: Unit; readonly from: number; readonly until: number }[];
  /** At most one at each end of the window: no whole bucket of the finest unit. */
  readonly rests: readonly { readonly from: number; readonly until: number }[];
}

/**
 * Divides a window into buckets and rests, each part once.
 *
 * @param units the finest first
 * @param until Infinity: everything since `from`
 */
export function spansOf(units: readonly Unit[], from: number, until: number): Spans {
  const [unit, ...coarser] = units;
  if (from >= until) return { buckets: [], rests: [] };
  if (unit === undefined) return { buckets: [], rests: [{ from, until }] };
  const first = firstFrom(unit, from);
  const last = until === Number.POSITIVE_INFINITY ? until : startOf(unit, until);
  if (first >= last) return { buckets: [], rests: [{ from, until }] };
  const inner = spansOf(coarser, first, last);
  return {
    buckets: [...inner.rests.map((span) => ({ unit, ...span })), ...inner.buckets],
    rests: [
      { from, until: first },
      { from: last, until },
    ].filter((span) => span.from < span.until),
  };
}
