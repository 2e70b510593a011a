/** A moment that a person types: a position of the log, a time of today, or a date with or without a time. */

const CLOCK = /^(\d{1,2}):(\d\d)(?::(\d\d))?$/;
const DATE = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(Z)?)?$/;
const DAY = 86_400_000;

export const TYPED_HINT = 'Type 14:30, 2026-11-25 14:30 or a position of the log.';

/** For `at` of the address. */
export type Typed = { readonly at: string } | { readonly fault: string };

const utc = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');

/** @param now Unix milliseconds; times without a zone are the viewer's */
export function momentTyped(text: string, now: number): Typed {
  const typed = text.trim();
  if (/^\d{1,15}$/.test(typed)) return { at: String(Number(typed)) };
  const [, hour, minute, second] = CLOCK.exec(typed) ?? [];
  if (hour !== undefined) {
    const at = new Date(now);
    if (Number(hour) > 23 || Number(minute) > 59 || Number(second ?? 0) > 59) return { fault: TYPED_HINT };
    at.setHours(Number(hour), Number(minute), Number(second ?? 0), 0);
    // A time that is yet to come today is yesterday's.
    return { at: utc(at.getTime() > now ? at.getTime() - DAY : at.getTime()) };
  }
  const [whole, year, month, day, clock = '00:00', zone = ''] = DATE.exec(typed) ?? [];
  const at = whole === undefined ? Number.NaN : Date.parse(`${year}-${month}-${day}T${clock}${zone}`);
  if (Number.isNaN(at)) return { fault: TYPED_HINT };
  if (at > now) return { fault: 'This moment is yet to come.' };
  return { at: utc(at) };
}
