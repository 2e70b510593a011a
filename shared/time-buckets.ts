/**
 * Hours, days, dekads, months and years of UTC: the buckets that read models add up in. A month has three dekads, which
 * begin on its 1st, 11th and 21st day. Each bucket begins where a bucket of every shorter unit begins. Times are Unix
 * milliseconds.
 */

/** The finest first. */
export const UNITS = ['hour', 'day', 'dekad', 'month', 'year'] as const;
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
  if (unit === 'year') return Date.UTC(date.getUTCFullYear(), 0);
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
  if (unit === 'year') return Date.UTC(date.getUTCFullYear() + 1, 0);
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

/** A part of a sum: what is in these buckets is added (1) or taken away (-1). Without a unit: single rows. */
export interface Term {
  readonly unit: Unit | null;
  readonly from: number;
  /** Infinity: no end. */
  readonly until: number;
  readonly sign: 1 | -1;
}

/**
 * Sums of everything since a moment, from as few buckets as possible. For each unit, the edge that is nearest to the moment
 * is where its buckets begin. If that edge is before the moment, what lies between is taken away: the sums since 23:00
 * yesterday are those of today and of one hour, and the sums since 01:00 yesterday are those of both days without one hour.
 *
 * Groups that have nothing since the moment may occur, with sums of 0.
 *
 * @param units the finest first
 * @param now after this there is hardly anything to read
 */
export function termsSince(units: readonly Unit[], from: number, now: number): Term[] {
  const terms: Term[] = [];
  let unit: Unit | null = null;
  let edge = from;
  for (const next of units) {
    const [before, after] = [startOf(next, from), firstFrom(next, from)];
    const nearest = from - before < Math.min(after, now) - from ? before : after;
    if (edge < nearest) terms.push({ unit, from: edge, until: nearest, sign: 1 });
    if (edge > nearest) terms.push({ unit, from: nearest, until: edge, sign: -1 });
    [unit, edge] = [next, nearest];
  }
  return [...terms, { unit, from: edge, until: Number.POSITIVE_INFINITY, sign: 1 }];
}
