/** Schedules in cron's five fields: minute, hour, day of month, month, day of week. */
import { createHash } from 'node:crypto';
import { type CronExpression, CronExpressionParser, CronMonth } from 'cron-parser';
import { LRUCache } from 'lru-cache';
import { MINUTE } from './time.ts';

const FIELDS = 5;
/** Maximum number of characters; no schedule written by hand needs more. */
const MAX_CRON = 200;

/**
 * Whether no month of a schedule has its days, as with `0 0 31 4,6 *`. The library notices it in a single month only, and
 * would otherwise search for seconds, and throw.
 */
function neverComes({ fields: { dayOfMonth, month, dayOfWeek } }: CronExpression): boolean {
  // Given both, either day counts.
  if (!dayOfWeek.isWildcard || dayOfMonth.hasLastChar) return false;
  const longest = Math.max(...month.values.map((one) => CronMonth.daysInMonth[Number(one) - 1] ?? 0));
  return Math.min(...dayOfMonth.values.map(Number)) > longest;
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
    const expression = CronExpressionParser.parse(cron, { tz: 'UTC' });
    return neverComes(expression) ? 'never comes: none of its months has such a day' : undefined;
  } catch (error) {
    return `is not a valid schedule: ${error instanceof Error ? error.message : String(error)}`;
  }
}

interface Known {
  readonly expression: CronExpression;
  /** Unix seconds: between this time and `next` the schedule is not due. */
  after: number;
  next: number;
}

/** Cached, because parsing a schedule takes far longer than evaluating it. */
const known = new LRUCache<string, Known>({ max: 5_000 });

function nextAfter(one: Known, after: number): number {
  one.expression.reset(new Date(after * 1_000));
  one.after = after;
  one.next = Math.floor(one.expression.next().getTime() / 1_000);
  return one.next;
}

/**
 * The minutes in which a schedule is due, in Unix seconds: after `after`, up to `until`. A due time that the clock
 * skips is made up for after the change; one that occurs twice counts once for schedules of fixed hours.
 *
 * @param zone IANA name
 * @throws Error for an invalid schedule
 */
export function dueMinutes(cron: string, zone: string, after: number, until: number): readonly number[] {
  const key = `${zone} ${cron}`;
  let one = known.get(key);
  if (!one) {
    const expression = CronExpressionParser.parse(cron, { tz: zone });
    const never = { after: Number.NEGATIVE_INFINITY, next: Number.POSITIVE_INFINITY };
    one = { expression, ...(neverComes(expression) ? never : { after: Number.POSITIVE_INFINITY, next: 0 }) };
    known.set(key, one);
  }
  const due: number[] = [];
  let next = one.after <= after && after < one.next ? one.next : nextAfter(one, after);
  for (; next <= until; next = nextAfter(one, next)) due.push(next);
  return due;
}

/** The first due minute of a schedule after `after`, both Unix seconds; null: none. @param zone IANA name */
export function nextDue(cron: string, zone: string, after: number): number | null {
  const expression = CronExpressionParser.parse(cron, { tz: zone, currentDate: new Date(after * 1_000) });
  if (neverComes(expression)) return null;
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

/** Delay of a job, so that jobs of one schedule do not all start at once: 0 to `most` seconds, the same each time. */
export const staggerOf = (name: string, most: number): number =>
  createHash('sha256').update(name).digest().readUInt32BE() % (most + 1);

/** Whether a schedule may be due more than once in a day. */
export function isFrequent(cron: string): boolean {
  const { minute, hour } = CronExpressionParser.parse(cron, { tz: 'UTC' }).fields;
  return minute.values.length * hour.values.length > 1;
}

/** The beginning of the minute of a time, Unix seconds. */
export const minuteOf = (at: number): number => at - (at % MINUTE);
