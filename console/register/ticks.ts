/** The ticks of the register: few, at round times of the viewer's zone. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export interface Tick {
  /** Unix milliseconds. */
  readonly at: number;
  readonly label: string;
}

/** Steps of less than a day, milliseconds. */
const WITHIN_DAY = [MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR];
const DAYS = [1, 2, 5, 10];
const MONTHS = [1, 2, 3, 6, 12, 24, 60, 120];

const label = (at: number, options: Intl.DateTimeFormatOptions): string =>
  new Date(at).toLocaleString('en-GB', options);

const clock = (at: number): string => label(at, { hour: '2-digit', minute: '2-digit' });
const day = (at: number): string => label(at, { day: 'numeric', month: 'short' });
const midnightOf = (at: number): Date => new Date(new Date(at).setHours(0, 0, 0, 0));

/** Times from `first`, each made of the one before by the calendar, so that summer time shifts none. */
function stepped(first: Date, end: number, next: (date: Date) => void): number[] {
  const times: number[] = [];
  for (const date = new Date(first); date.getTime() <= end; next(date)) times.push(date.getTime());
  return times;
}

/** @param start Unix milliseconds @param most maximum number of ticks */
export function ticksOf(start: number, end: number, most: number): Tick[] {
  const within = (times: readonly number[]) => times.filter((at) => at >= start && at <= end);
  const fits = (step: number) => (end - start) / step <= most - 1;
  const step = WITHIN_DAY.find(fits);
  if (step !== undefined) {
    const times = stepped(midnightOf(start), end, (date) => date.setTime(date.getTime() + step));
    // Midnight is shown as the day that begins.
    return within(times).map((at) => ({ at, label: at === midnightOf(at).getTime() ? day(at) : clock(at) }));
  }
  const days = DAYS.find((n) => fits(n * DAY));
  if (days !== undefined) {
    const times = stepped(midnightOf(start), end, (date) => date.setDate(date.getDate() + days));
    return within(times).map((at) => ({ at, label: day(at) }));
  }
  const months = MONTHS.find((n) => fits(n * 30 * DAY)) ?? 240;
  const first = new Date(new Date(start).getFullYear(), 0, 1);
  const times = stepped(first, end, (date) => date.setMonth(date.getMonth() + months));
  const options: Intl.DateTimeFormatOptions = months < 12 ? { month: 'short', year: 'numeric' } : { year: 'numeric' };
  return within(times).map((at) => ({ at, label: label(at, options) }));
}
