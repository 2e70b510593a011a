/** Schedules in cron's five fields: minute, hour, day of month, month, day of week. */
import { createHash } from 'node:crypto';
import { type CronExpression, CronExpressionParser } from 'cron-parser';
import { LRUCache } from 'lru-cache';
import { MINUTE } from './time.ts';

const FIELDS = 5;
/** Characters; no schedule written by hand needs more. */
const MAX_CRON = 200;

/** What is wrong with a schedule; undefined: nothing. */
export function cronProblem(cron: string): string | undefined {
  if (cron.length > MAX_CRON) return `has more than ${MAX_CRON} characters`;
  const count = cron.split(/\s+/).filter((field) => field !== '').length;
  if (count !== FIELDS)
    return `must have ${FIELDS} fields (minute, hour, day of month, month, day of week), such as 0 9 * * 1-5; it has ${count}`;
  // The library picks a value for H at random, so processes would disagree.
  if (/(^|[\s,])H/.test(cron)) return 'must name its times; H is none';
  try {
    CronExpressionParser.parse(cron, { tz: 'UTC' });
    return undefined;
  } catch (error) {
    return `is not a valid schedule: ${error instanceof Error ? error.message : String(error)}`;
  }
}

interface Known {
  readonly expression: CronExpression;
  /** Unix seconds: from then on it is not due before `next`. */
  after: number;
  next: number;
}

/** Parsing a schedule takes far longer than asking it. */
const known = new LRUCache<string, Known>({ max: 5_000 });

function nextAfter(one: Known, after: number): number {
  one.expression.reset(new Date(after * 1_000));
  one.after = after;
  one.next = Math.floor(one.expression.next().getTime() / 1_000);
  return one.next;
}

/**
 * The minutes in which a schedule is due, in Unix seconds: later than `after`, not later than `until`. A time that the
 * clocks skip is made up for when they have moved; a time that they show twice counts once for schedules of fixed hours.
 *
 * @param zone IANA name
 * @throws Error when it is no schedule
 */
export function dueMinutes(cron: string, zone: string, after: number, until: number): readonly number[] {
  const key = `${zone} ${cron}`;
  let one = known.get(key);
  if (!one) {
    one = { expression: CronExpressionParser.parse(cron, { tz: zone }), after: Number.POSITIVE_INFINITY, next: 0 };
    known.set(key, one);
  }
  const due: number[] = [];
  let next = one.after <= after && after < one.next ? one.next : nextAfter(one, after);
  for (; next <= until; next = nextAfter(one, next)) due.push(next);
  return due;
}

/** The first minute later than `after` in which a schedule is due; both Unix seconds. @param zone IANA name */
export function nextDue(cron: string, zone: string, after: number): number {
  const expression = CronExpressionParser.parse(cron, { tz: zone, currentDate: new Date(after * 1_000) });
  return Math.floor(expression.next().getTime() / 1_000);
}

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

/** By how much a job begins late so that jobs of one schedule do not all begin at once: 0 to `most` seconds, the same each time. */
export const staggerOf = (name: string, most: number): number =>
  createHash('sha256').update(name).digest().readUInt32BE() % (most + 1);

/** Whether a schedule may be due more than once on a day. */
export function isFrequent(cron: string): boolean {
  const { minute, hour } = CronExpressionParser.parse(cron, { tz: 'UTC' }).fields;
  return minute.values.length * hour.values.length > 1;
}

/** The beginning of the minute of a time, Unix seconds. */
export const minuteOf = (at: number): number => at - (at % MINUTE);
