/**
 * Hours, shifts, days, pentads, dekads, months and years of UTC: the buckets in which read models sum. A day has three
 * shifts of eight hours. A month has three dekads, which begin on its 1st, 11th and 21st day, and a dekad has two
 * pentads, the second of which begins on its 6th day. Each bucket begins where a bucket of every shorter unit begins.
 * Times are Unix milliseconds.
 */

/** The finest first. */
export const UNITS = ['hour', 'shift', 'day', 'pentad', 'dekad', 'month', 'year'] as const;
export type Unit = (typeof UNITS)[number];

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
/** Units that divide a day, milliseconds. */
const OF_A_DAY = { hour: HOUR_MS, shift: 8 * HOUR_MS, day: DAY_MS } as const;
/** Units that divide a month, days; the last one of a month has the remaining days. */
const OF_A_MONTH = { pentad: 5, dekad: 10, month: 30 } as const;
const MONTH_DAYS = OF_A_MONTH.month;

const dividesDay = (unit: Unit): unit is keyof typeof OF_A_DAY => Object.hasOwn(OF_A_DAY, unit);

/** The pentad or dekad of the month that contains a day, from 0. */
const partOfMonth = (days: number, date: Date): number =>
  Math.min(MONTH_DAYS / days - 1, Math.floor((date.getUTCDate() - 1) / days));

/** The beginning of the bucket that contains a moment. */
export function startOf(unit: Unit, at: number): number {
  if (dividesDay(unit)) return at - (at % OF_A_DAY[unit]);
  const date = new Date(at);
  if (unit === 'year') return Date.UTC(date.getUTCFullYear(), 0);
  const days = OF_A_MONTH[unit];
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1 + partOfMonth(days, date) * days);
}

/** The beginning of the first bucket that begins at or after a moment. */
export function firstFrom(unit: Unit, at: number): number {
  const start = startOf(unit, at);
  if (start === at) return at;
  if (dividesDay(unit)) return start + OF_A_DAY[unit];
  const date = new Date(at);
  if (unit === 'year') return Date.UTC(date.getUTCFullYear() + 1, 0);
  const days = OF_A_MONTH[unit];
  const next = (partOfMonth(days, date) + 1) * days;
  return next < MONTH_DAYS
    ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1 + next)
    : Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}

/** The parts of a window: whole buckets, and the rests at its edges. Spans include their start, not their end. */
export interface Spans {
  /** Buckets of the longest units that fit, so that few are read. */
  readonly buckets: readonly { readonly unit: Unit; readonly from: number; readonly until: number }[];
  /** At most one at each end of the window, shorter than a bucket of the finest unit. */
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

/** A part of a sum: these buckets are added (1) or subtracted (-1). Without a unit: single rows. */
export interface Term {
  readonly unit: Unit | null;
  readonly from: number;
  /** Infinity: no end. */
  readonly until: number;
  readonly sign: 1 | -1;
}

/** Approximate hours of each unit, for weighing. */
const HOURS: Readonly<Record<Unit, number>> = {
  hour: 1,
  shift: 8,
  day: 24,
  pentad: 122,
  dekad: 244,
  month: 730,
  year: 8_766,
};
/** Cost of each further term, in buckets. */
const TERM = 0.3;

interface Weighed {
  readonly terms: readonly Term[];
  readonly cost: number;
}

/** The cheapest terms that add up to everything since an edge, where `unit` and the coarser units have a boundary. */
function cheapest(unit: Unit, edge: number, coarser: readonly Unit[], from: number, now: number): Weighed {
  const costOf = (start: number, end: number) =>
    TERM + Math.max(0, Math.min(end, now) - start) / (HOURS[unit] * HOUR_MS);
  const endless = Number.POSITIVE_INFINITY;
  const all = { terms: [{ unit, from: edge, until: endless, sign: 1 as const }], cost: costOf(edge, endless) };
  const [next, ...rest] = coarser;
  if (next === undefined) return all;
  const ways = [firstFrom(next, from), startOf(next, from)].map((other): Weighed => {
    const { terms, cost } = cheapest(next, other, rest, from, now);
    if (edge === other) return { terms, cost };
    const [start, end, sign] = edge < other ? ([edge, other, 1] as const) : ([other, edge, -1] as const);
    return { terms: [{ unit, from: start, until: end, sign }, ...terms], cost: cost + costOf(start, end) };
  });
  return ways.reduce((best, way) => (way.cost < best.cost ? way : best), all);
}

/**
 * Sums of everything since a moment, from as few buckets as possible. Buckets of a unit begin at an edge after the
 * moment, or before it; in the latter case the part in between is subtracted: the sums since 23:00 yesterday are those
 * of today plus one hour, and the sums since 01:00 yesterday are those of both days minus one hour. Single rows are
 * read up to the nearest edge of the finest unit.
 *
 * Groups without data since the moment may occur, with sums of 0.
 *
 * @param units the finest first
 * @param now after this there is hardly any data
 */
export function termsSince(units: readonly Unit[], from: number, now: number): readonly Term[] {
  const [finest, ...coarser] = units;
  if (finest === undefined) return [{ unit: null, from, until: Number.POSITIVE_INFINITY, sign: 1 }];
  const [before, after] = [startOf(finest, from), firstFrom(finest, from)];
  const edge = from - before < Math.min(after, now) - from ? before : after;
  const { terms } = cheapest(finest, edge, coarser, from, now);
  if (edge === from) return terms;
  const single = edge > from ? { from, until: edge, sign: 1 as const } : { from: edge, until: from, sign: -1 as const };
  return [{ unit: null, ...single }, ...terms];
}
