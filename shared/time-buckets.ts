/** Hours, days and months of UTC: the buckets that read models add up in. Times are Unix milliseconds. */

export const UNITS = ['hour', 'day', 'month'] as const;
export type Unit = (typeof UNITS)[number];

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** The beginning of the bucket that a moment is in. */
export function startOf(unit: Unit, at: number): number {
  if (unit === 'hour') return at - (at % HOUR_MS);
  if (unit === 'day') return at - (at % DAY_MS);
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

/** The beginning of the first bucket that begins at or after a moment. */
export function firstFrom(unit: Unit, at: number): number {
  const start = startOf(unit, at);
  if (start === at) return at;
  if (unit === 'hour') return start + HOUR_MS;
  if (unit === 'day') return start + DAY_MS;
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}
