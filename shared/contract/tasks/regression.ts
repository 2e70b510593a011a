/** Whether tasks take longer, or need more help, since a given time. */
import { z } from 'zod';
import { unixSeconds } from '../common.ts';

const LOOKBACK = { default: 604_800, min: 60, max: 2_592_000 } as const;

/** A positive number is Unix seconds; any other value must be a date. Undefined: neither. */
function momentOf(value: string): number | undefined {
  const text = value.trim();
  const number = Number(text);
  if (Number.isNaN(number)) {
    const at = Math.floor(Date.parse(text) / 1000);
    return Number.isSafeInteger(at) && at > 0 ? at : undefined;
  }
  return number > 0 && Number.isSafeInteger(Math.floor(number)) ? Math.floor(number) : undefined;
}

interface Start {
  readonly beta_start?: string | undefined;
  readonly cutover?: string | undefined;
}

const givenStart = ({ beta_start, cutover }: Start): string | undefined =>
  [beta_start, cutover].find((value) => value !== undefined && value.trim() !== '');

/** Time of the change, Unix seconds; undefined if the query does not contain it. */
export function betaStart(query: Start): number | undefined {
  const given = givenStart(query);
  return given === undefined ? undefined : momentOf(given);
}

const momentText = z
  .string()
  .max(100)
  .optional()
  .meta({ override: { type: 'string' } });

export const regressionQuery = z
  .object({
    beta_start: momentText.describe('time of the change: Unix seconds, or a date such as 2026-01-31T12:00:00Z'),
    cutover: momentText.describe('alias of beta_start'),
    lookback_seconds: z
      .string()
      .optional()
      .transform((value) => {
        const number = Math.floor(Number(value?.trim() || Number.NaN));
        if (Number.isNaN(number)) return LOOKBACK.default;
        return Math.min(Math.max(number, LOOKBACK.min), LOOKBACK.max);
      })
      .meta({
        override: { type: 'integer', minimum: LOOKBACK.min, maximum: LOOKBACK.max, default: LOOKBACK.default },
      })
      .describe('maximum time before beta_start to compare with'),
  })
  .superRefine((query, context) => {
    if (betaStart(query) !== undefined) return;
    const message =
      givenStart(query) === undefined
        ? 'is required; send the moment of the change, as Unix seconds or as a date'
        : 'must be positive Unix seconds or a date such as 2026-01-31T12:00:00Z';
    context.addIssue({ code: 'custom', path: ['beta_start'], message });
  });

const windowSchema = z.object({
  label: z.enum(['baseline', 'post']),
  start: unixSeconds,
  end: unixSeconds.describe('the first moment behind the window'),
  sample_size: z.int(),
  latency_seconds: z.object({ p50: z.number().nullable(), p95: z.number().nullable(), avg: z.number().nullable() }),
  interventions: z.object({ count: z.int(), rate: z.number() }),
});
export type RegressionWindow = z.infer<typeof windowSchema>;

export const regressionResponse = z.object({
  metric_definitions: z.object({ p95_task_latency_seconds: z.string(), intervention_rate: z.string() }),
  params: z.object({ beta_start: unixSeconds, lookback_seconds: z.int() }),
  windows: z.object({ baseline: windowSchema, post: windowSchema }),
  deltas: z.object({
    p95_latency_seconds: z.number().nullable().describe('post minus baseline; null when one of them has no sample'),
    intervention_rate: z.number(),
  }),
});
export type Regression = z.infer<typeof regressionResponse>;
