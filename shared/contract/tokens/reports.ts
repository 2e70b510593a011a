/** Reports of used tokens. */
import { z } from 'zod';
import { DAY_MS } from '../../time-buckets.ts';
import { lineOfText, MAX_ID } from '../common.ts';
import { filledText } from '../storable.ts';
import { allInput, PRICE_SOURCES } from './costs.ts';

/** Most reports of a batch. */
export const MAX_REPORTS = 1_000;
/** A week. */
const MAX_DURATION_MS = 604_800_000;

/** How long before now, and how far ahead of it, a report may say that its tokens were used, milliseconds. */
export const MAX_LATE_MS = 90 * DAY_MS;
export const MAX_AHEAD_MS = 5 * 60_000;

/** Smaller numbers are seconds: as milliseconds they would be before March 1973. */
const FIRST_MILLISECONDS = 100_000_000_000;
const MAX_TIMESTAMP = 9_999_999_999_999;

const count = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const cached = count.nullish().transform((tokens) => tokens ?? 0);

/** How callers report cached tokens. */
export const cachedTokens = {
  cacheReadTokens: cached.describe('input read from the provider’s prompt cache, not part of inputTokens; default 0'),
  cacheWriteTokens: cached.describe('input written to it, not part of inputTokens; default 0'),
};

/** A task of the workspace, as a number or a numeric text; undefined for any other value. */
const taskId = z
  .unknown()
  .transform((value) => {
    const isText = typeof value === 'string' && value.length <= 32 && value.trim() !== '';
    const number = isText || typeof value === 'number' ? Number(value) : 0;
    return Number.isSafeInteger(number) && number > 0 ? number : null;
  })
  .meta({ override: { type: ['integer', 'null'], minimum: 1, maximum: MAX_ID } })
  .describe('attributes the tokens to a task; ignored when there is no such task');

const reportFields = z.object({
  id: lineOfText(1, 128)
    .nullish()
    .transform((id) => id ?? null)
    .meta({ override: { type: ['string', 'null'], minLength: 1, maxLength: 128 } })
    .describe('a report with a known id is recorded only once; default: a new id'),
  model: filledText(200),
  sessionId: filledText(512).describe('`<agent name>:<kind of chat>`'),
  inputTokens: count,
  outputTokens: count,
  ...cachedTokens,
  operation: filledText(100)
    .nullish()
    .transform((operation) => operation ?? 'chat_completion')
    .meta({ override: { type: 'string', maxLength: 100, default: 'chat_completion' } }),
  duration: z
    .number()
    .min(0)
    .max(MAX_DURATION_MS)
    .nullish()
    .transform((duration) => duration ?? null)
    .meta({ override: { type: ['number', 'null'], minimum: 0, maximum: MAX_DURATION_MS } })
    .describe('milliseconds'),
  taskId: taskId.optional().transform((id) => id ?? null),
  timestamp: z
    .number('must be Unix seconds or milliseconds')
    .min(0)
    .max(MAX_TIMESTAMP)
    .nullish()
    .transform((time) =>
      typeof time === 'number' ? Math.round(time < FIRST_MILLISECONDS ? time * 1_000 : time) : null,
    )
    .meta({ override: { type: ['number', 'null'], minimum: 0, maximum: MAX_TIMESTAMP } })
    .describe(
      'when the tokens were used, Unix seconds or milliseconds, from 90 days ago to 5 minutes ahead; default: now',
    ),
});

export const tokenReportBody = reportFields
  .transform(
    ({
      sessionId,
      inputTokens,
      outputTokens,
      cacheReadTokens,
      cacheWriteTokens,
      taskId: task_id,
      timestamp: used_at,
      ...report
    }) => ({
      ...report,
      session_id: sessionId,
      input_tokens: inputTokens,
      output_tokens: outputTokens,
      cache_read_tokens: cacheReadTokens,
      cache_write_tokens: cacheWriteTokens,
      task_id,
      used_at,
    }),
  )
  .refine((one) => Number.isSafeInteger(allInput(one) + one.output_tokens), {
    path: ['outputTokens'],
    message: 'must not make the sum of all counts larger than 2^53 - 1',
  });

export const tokenBatchBody = z.object({ reports: z.array(tokenReportBody).min(1).max(MAX_REPORTS) });

export const tokenRecordSchema = z
  .object({
    id: z.string(),
    model: z.string(),
    sessionId: z.string(),
    agentId: z.int().nullable().describe('null: no agent of the workspace had the name'),
    agentName: z.string(),
    timestamp: z
      .int()
      .describe('when the tokens were used, as reported, else when the report was recorded; Unix milliseconds'),
    inputTokens: z.number(),
    outputTokens: z.number(),
    cacheReadTokens: z.number(),
    cacheWriteTokens: z.number(),
    totalTokens: z.number().describe('cached ones included'),
    cost: z.number().describe('US dollars, by the prices at the time of the report'),
    price: z
      .enum(PRICE_SOURCES)
      .describe(
        'default: no price matches the model, so the cost is an estimate; subscription: the tokens cost nothing',
      ),
    operation: z.string(),
    taskId: z.int().nullable(),
    workspaceId: z.int(),
    duration: z.number().optional().describe('milliseconds'),
  })
  .meta({ id: 'TokenRecord' });
export type TokenRecord = z.infer<typeof tokenRecordSchema>;

export const tokenReportResponse = z.object({
  success: z.literal(true),
  record: tokenRecordSchema,
});

export const tokenBatchResponse = z.object({
  success: z.literal(true),
  recorded: z.int().describe('reports that are new'),
  repeated: z.int().describe('reports that had been recorded before'),
  ids: z.array(z.string()).describe('of all reports, in their order'),
});
