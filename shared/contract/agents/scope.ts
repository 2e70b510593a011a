/** Parameters of reports about one agent (attribution, diagnostics): window, sections, and access scope. */
import { z } from 'zod';
import { invalidField } from '../../errors.ts';
import { HOUR, seconds } from '../../time.ts';
import { onlyOne, unixSeconds } from '../common.ts';

export const MAX_HOURS = 720;
export const DEFAULT_HOURS = 24;

/**
 * The query of a report. `windowOf` and `sectionsOf` check its values after the agent has been found and the caller has
 * been admitted, because clients expect refusals in that order: 404, 403, 400.
 */
export const reportQuery = (sections: readonly string[]) =>
  z.object({
    hours: z
      .string()
      .optional()
      .meta({ override: { type: 'integer', minimum: 1, maximum: MAX_HOURS, default: DEFAULT_HOURS } })
      .describe('length of the window, which ends now'),
    section: z
      .string()
      .optional()
      .describe(`sections to include, separated by commas: ${sections.join(', ')}; default: all`),
    privileged: onlyOne.describe('as an admin, read the report of any agent'),
  });
export type ReportQuery = z.infer<ReturnType<typeof reportQuery>>;

/** The window of a report, Unix seconds, including its first second. */
export interface Timeframe {
  readonly hours: number;
  readonly since: number;
  readonly until: number;
}

export const timeframeSchema = z.object({
  hours: z.int(),
  since: unixSeconds,
  until: unixSeconds.describe('time of the response'),
});

/**
 * @param hours as in the query; absent means 24
 * @param now Unix ms
 * @throws AppError 400
 */
export function windowOf(hours: string | undefined, now: number): Timeframe {
  const number = hours === undefined ? DEFAULT_HOURS : Number(hours);
  // Number() accepts unintended notations, such as 0x10 and the empty text.
  if (hours !== undefined && (!/^\d+(?:\.0+)?$/.test(hours) || number < 1 || number > MAX_HOURS))
    throw invalidField('hours', `must be a whole number from 1 to ${MAX_HOURS}`);
  const until = seconds(now);
  return { hours: number, since: until - number * HOUR, until };
}

/**
 * The requested sections. Spaces around names and empty names are ignored.
 *
 * @param section as in the query; absent or empty means all
 * @throws AppError 400
 */
export function sectionsOf<const S extends string>(section: string | undefined, all: readonly S[]): ReadonlySet<S> {
  if (section === undefined || section === '') return new Set(all);
  const names = section
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const unknown = names.filter((name) => !all.some((one) => one === name));
  if (unknown.length > 0) throw invalidField('section', `unknown: ${shortened(unknown)}; known are ${all.join(', ')}`);
  if (names.length === 0) throw invalidField('section', `must name at least one of ${all.join(', ')}`);
  return new Set(all.filter((one) => names.includes(one)));
}

const MAX_SHOWN = 5;
const shortened = (names: readonly string[]): string =>
  [...new Set(names)]
    .slice(0, MAX_SHOWN)
    .map((name) => JSON.stringify(name.slice(0, 50)))
    .join(', ');
