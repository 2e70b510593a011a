/** Log lines: those of the service, and those that clients add. */
import { z } from 'zod';
import { LINE_LEVELS } from '../../ports/monitoring/logs.ts';
import { filterParam, jsonObject, limitParam, linesOfText } from '../common.ts';
import { filledText, isStorable, UNSTORABLE_TEXT } from '../storable.ts';

export const logEntrySchema = z
  .object({
    id: z.string(),
    timestamp: z.int().describe('Unix milliseconds'),
    level: z.enum(LINE_LEVELS),
    source: z.string(),
    session: z.string().optional(),
    message: z.string(),
    data: jsonObject.nullable().describe('further fields of the service’s own log lines; for admins'),
  })
  .meta({ id: 'LogEntry' });
export type LogEntryResponse = z.infer<typeof logEntrySchema>;

const filter = filterParam.refine(isStorable, UNSTORABLE_TEXT);

export const logsQuery = z.object({
  action: z
    .enum(['recent', 'sources', 'tail'])
    .optional()
    .describe('recent (default): the newest that match; tail: the newest 50 of each source; sources: their names'),
  limit: limitParam(100, 200),
  level: z.enum(LINE_LEVELS).optional().describe('recent only'),
  session: filter.describe('part of the session; recent only'),
  search: filter.describe('part of the message or the source, in any case; recent only'),
  source: filter.describe('exact name'),
  since: z
    .string()
    .refine((value) => /^\d{1,15}$/.test(value), 'must be Unix milliseconds')
    .transform(Number)
    .optional()
    .meta({ override: { type: 'integer', minimum: 0, maximum: 999_999_999_999_999, default: 0 } })
    .describe('only lines after this time, Unix milliseconds; tail only'),
});

export const logsResponse = z.union([
  z.object({ logs: z.array(logEntrySchema).describe('newest first') }),
  z.object({ sources: z.array(z.string()) }),
]);

/** Default source of lines. */
export const OWN_SOURCE = 'signalbox';
/** Maximum number of characters in a line's message. */
export const MAX_LINE = 10_000;

export const logBody = z.object({
  action: z.literal('add'),
  message: linesOfText(MAX_LINE).refine((value) => value.trim() !== '', 'must not be empty'),
  level: z.enum(LINE_LEVELS).optional().describe('default info'),
  source: filledText(100)
    .optional()
    .describe(`default ${OWN_SOURCE}; with the key of an agent always \`agent:<name>\``),
  session: filledText(500).optional(),
});

export const logResponse = z.object({ success: z.literal(true), entry: logEntrySchema });
