/**
 * Schedules in cron's five fields: minute, hour, day of month, month, day of week.
 *
 * A time is a reading of the local clock. It is due when the clock first shows that reading or a later one: at the
 * first moment after a gap, and once if the clock shows it twice. If the hour begins with `*`, the schedule follows real
 * hours: every moment at which the clock shows the time.
 *
 * cron-parser reads the fields. Times are computed here, because libraries miss or repeat runs at clock changes over
 * midnight (cron-parser in Santiago, cron-parser and croner in Nuuk) or of other than an hour (Lord Howe, Troll).
 */
import { createHash } from 'node:crypto';
import { CronExpressionParser } from 'cron-parser';
import { LRUCache } from 'lru-cache';
import { DAY, HOUR, MINUTE } from './time.ts';

const FIELDS = 5;
/** Maximum number of characters; no schedule written by hand needs more. */
const MAX_CRON = 200;
/** Longest time between two due days: from 29 February 2096 to that of 2104. */
const SEARCH_DAYS = 9 * 366;

// --- Schedules --------------------------------------------------------------------------------------------------------

interface Schedule {
  /** Due times of a day, seconds since midnight on the local clock, in order. */
  readonly times: readonly number[];
  readonly realHours: boolean;
  /** @param day days since 1970-01-01 */
  readonly isDueOn: (day: number) => boolean;
}

/** Whether a day is among those of a field, whose values may be `L` (the last) and `5L` (the last Friday). */
const includes = (values: readonly (number | string)[], value: number, isLast: boolean, last: string): boolean =>
  values.includes(value) || (isLast && values.includes(last));

/** @throws Error for an invalid schedule */
function parse(cron: string): Schedule {
  const { minute, hour, dayOfMonth, month, dayOfWeek } = CronExpressionParser.parse(cron, { tz: 'UTC' }).fields;
  return {
    times: hour.values.flatMap((h) => minute.values.map((m) => h * HOUR + m * MINUTE)),
    realHours: cron.trim().split(/\s+/)[1]?.startsWith('*') === true,
    isDueOn(day) {
      const date = new Date(day * DAY * 1_000);
      if (!(month.values as readonly number[]).includes(date.getUTCMonth() + 1)) return false;
      const [dayNumber, weekday] = [date.getUTCDate(), date.getUTCDay()];
      const days = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
      const inMonth = includes(dayOfMonth.values, dayNumber, dayNumber === days, 'L');
      const inWeek =
        includes(dayOfWeek.values, weekday, dayNumber > days - 7, `${weekday}L`) &&
        (dayOfWeek.nthDay <= 0 || Math.ceil(dayNumber / 7) === dayOfWeek.nthDay);
      // Given both, either day counts.
      if (dayOfMonth.isWildcard) return inWeek;
      return dayOfWeek.isWildcard ? inMonth : inMonth || inWeek;
    },
  };
}

/** The first due day of up to `SEARCH_DAYS` days from `day` on; `step` -1: the last one up to `day`. */
function dueDay({ isDueOn }: Schedule, day: number, step: 1 | -1): number | undefined {
  for (let count = 0; count < SEARCH_DAYS; count++) if (isDueOn(day + step * count)) return day + step * count;
  return undefined;
}

/** The error of a schedule; undefined if it is valid. */
export function cronProblem(cron: string): string | undefined {
  if (cron.length > MAX_CRON) return `has more than ${MAX_CRON} characters`;
  const count = cron.split(/\s+/).filter((field) => field !== '').length;
  if (count !== FIELDS)
    return `must have ${FIELDS} fields (minute, hour, day of month, month, day of week), such as 0 9 * * 1-5; it has ${count}`;
  // The library picks a random value for H, so processes would disagree.
  if (/(^|[\s,])H/.test(cron)) return 'must name its times; H is none';
  try {
    return dueDay(parse(cron), 0, 1) === undefined ? 'never comes: none of its months has such a day' : undefined;
  } catch (error) {
    return `is not a valid schedule: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Why a schedule cannot be planned in a zone; undefined: it can. A log may hold a zone that this process lacks. */
export function planProblem(cron: string, zone: string): string | undefined {
  if (!isTimeZone(zone)) return `The time zone ${zone} is unknown to this service; replace the job.`;
  const problem = cronProblem(cron);
  return problem === undefined ? undefined : `The schedule ${problem}; replace the job.`;
}

// --- Local clocks -----------------------------------------------------------------------------------------------------

const clocks = new LRUCache<string, Intl.DateTimeFormat>({ max: 100 });

/** Seconds by which a zone's clock is ahead of UTC. `at`: Unix seconds */
function offsetAt(zone: string, at: number): number {
  let clock = clocks.get(zone);
  if (!clock) {
    clock = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
    clocks.set(zone, clock);
  }
  const [, sign, hours = 0, minutes = 0, rest = 0] =
    /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(clock.format(at * 1_000)) ?? [];
  const size = Number(hours) * HOUR + Number(minutes) * MINUTE + Number(rest);
  return sign === '-' ? -size : size;
}

/** A range of time with one offset; Unix seconds, without `to`. */
interface Period {
  readonly from: number;
  readonly to: number;
  readonly offset: number;
}

const periods = new LRUCache<string, readonly Period[]>({ max: 2_000 });

/** The periods in which a zone's clock shows a day, which has at most one clock change. @param day days since 1970 */
function periodsOf(zone: string, day: number): readonly Period[] {
  const key = `${zone} ${day}`;
  const found = periods.get(key);
  if (found) return found;
  // Clocks are at most 14 hours ahead of UTC, and 12 behind.
  const [from, to] = [day * DAY - 15 * HOUR, (day + 1) * DAY + 13 * HOUR];
  const [before, after] = [offsetAt(zone, from), offsetAt(zone, to)];
  let [low, high] = [from, to];
  while (before !== after && high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(zone, middle) === before) low = middle;
    else high = middle;
  }
  const result = [
    { from, to: high, offset: before },
    { from: high, to, offset: after },
  ];
  periods.set(key, result);
  return result;
}

/** The due moments of one reading of the local clock on a day, Unix seconds, in order. */
function momentsOfReading({ realHours }: Schedule, zone: string, day: number, reading: number): readonly number[] {
  const shown = periodsOf(zone, day)
    .filter(({ from, to, offset }) => reading - offset < to && (!realHours || reading - offset >= from))
    .map(({ from, offset }) => Math.max(from, reading - offset));
  return realHours ? shown : shown.slice(0, 1);
}

/** Every due moment of a local day, Unix seconds, in order. */
function momentsOf(schedule: Schedule, zone: string, day: number): readonly number[] {
  const moments = schedule.times.flatMap((time) => momentsOfReading(schedule, zone, day, day * DAY + time));
  return [...new Set(moments)].sort((a, b) => a - b);
}

// --- Due times --------------------------------------------------------------------------------------------------------

interface Around {
  /** The latest due time up to the moment, Unix seconds; -Infinity: none. */
  readonly last: number;
  /** The first due time after the moment, Unix seconds; Infinity: none. */
  readonly next: number;
}

const schedules = new LRUCache<string, Schedule>({ max: 5_000 });

function scheduleOf(cron: string): Schedule {
  const schedule = schedules.get(cron) ?? parse(cron);
  schedules.set(cron, schedule);
  return schedule;
}

/** What lies between two due times is the same for every moment between them. */
const known = new LRUCache<string, Around>({ max: 5_000 });

function around(cron: string, zone: string, at: number): Around {
  const key = `${zone} ${cron}`;
  const found = known.get(key);
  if (found && found.last <= at && at < found.next) return found;
  const schedule = scheduleOf(cron);
  const today = Math.floor((at + offsetAt(zone, at)) / DAY);
  /** Moments of two adjacent due days: where the clock goes back over midnight, the days overlap. */
  const moments = (day: number | undefined, step: 1 | -1): readonly number[] => {
    if (day === undefined) return [];
    return [day, day + step].flatMap((one) => (schedule.isDueOn(one) ? momentsOf(schedule, zone, one) : []));
  };
  function nearest(step: 1 | -1): number {
    const isBeyond = (moment: number) => (step === 1 ? moment > at : moment <= at);
    for (let day = dueDay(schedule, today - step, step); day !== undefined; day = dueDay(schedule, day + step, step)) {
      const beyond = moments(day, step).filter(isBeyond);
      if (beyond.length > 0) return step === 1 ? Math.min(...beyond) : Math.max(...beyond);
    }
    return step * Number.POSITIVE_INFINITY;
  }
  const result = { last: nearest(-1), next: nearest(1) };
  known.set(key, result);
  return result;
}

/** The latest due time of a schedule up to `at`, both Unix seconds; -Infinity: none. @param zone IANA name */
export const latestDue = (cron: string, zone: string, at: number): number => around(cron, zone, at).last;

/** The first due time of a schedule after `after`, both Unix seconds; null: none. @param zone IANA name */
export function nextDue(cron: string, zone: string, after: number): number | null {
  const { next } = around(cron, zone, after);
  return Number.isFinite(next) ? next : null;
}

/** A reading of a local clock. */
export interface ClockReading {
  /** Seconds since 1970-01-01 00:00 on that clock. */
  readonly seconds: number;
  /** Whether the clock shows it twice on this day. */
  readonly isTwice: boolean;
}

/**
 * The reading that a schedule was due for at a moment. After a gap it is what the clock did not show, unless it is also
 * due for what the clock shows then.
 *
 * @param at a due time, Unix seconds
 */
export function readingDue(cron: string, zone: string, at: number): ClockReading {
  const schedule = scheduleOf(cron);
  const shown = at + offsetAt(zone, at);
  const today = Math.floor(shown / DAY);
  const readings = [today - 1, today].flatMap((day) =>
    (schedule.isDueOn(day) ? schedule.times : [])
      .map((time) => day * DAY + time)
      .filter((reading) => momentsOfReading(schedule, zone, day, reading).includes(at)),
  );
  const [first = shown] = readings;
  const reading = readings.includes(shown) ? shown : first;
  const times = periodsOf(zone, Math.floor(reading / DAY)).filter(
    ({ from, to, offset }) => reading - offset >= from && reading - offset < to,
  );
  return { seconds: reading, isTwice: new Set(times.map(({ offset }) => offset)).size > 1 };
}

/** Times are made up for this far back after the clock was set back, seconds: a few turns of a schedule. */
const SET_BACK_GRACE = 5 * MINUTE;

/**
 * After which time a schedule may be due that was done up to `since`. If `since` is ahead, the clock was set back: times
 * are planned anew from now on. All in Unix seconds.
 */
export const dueAfter = (since: number, now: number): number => (since > now ? now - SET_BACK_GRACE : since);

/** An IANA name, such as Europe/Berlin. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Splits `0 4 * * * (Europe/Berlin)` into the schedule and its time zone. */
export function splitZone(text: string): { readonly schedule: string; readonly zone: string | undefined } {
  const [, schedule = text, zone] = /^(.*?)\s*\(([^()]*)\)$/.exec(text.trim()) ?? [];
  return { schedule: schedule.trim(), zone: zone?.trim() };
}

/** Delay of a job, so that jobs of one schedule do not all start at once: 0 to `most` seconds, the same each time. */
export const staggerOf = (name: string, most: number): number =>
  createHash('sha256').update(name).digest().readUInt32BE() % (most + 1);

/** Whether a schedule may be due more than once in a day. */
export function isFrequent(cron: string): boolean {
  return parse(cron).times.length > 1;
}

/** The beginning of the minute of a time, Unix seconds. */
export const minuteOf = (at: number): number => at - (at % MINUTE);
