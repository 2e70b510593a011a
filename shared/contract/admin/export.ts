/** Exports of data as a file. */
import { z } from 'zod';
import { limitParam, secondsParam } from '../common.ts';

/** Kinds of records that can be exported. */
export const EXPORT_KINDS = ['tasks', 'agents', 'activities', 'audit', 'pipelines'] as const;
export type ExportKind = (typeof EXPORT_KINDS)[number];

export const exportQuery = z.object({
  type: z.enum([...EXPORT_KINDS, 'all']).describe('pipelines: their runs'),
  format: z.enum(['json', 'csv']).default('json'),
  bom: z.enum(['0', '1']).optional().describe('1: CSV begins with a byte order mark, so that Excel reads it as UTF-8'),
  since: secondsParam.describe('created at this time or later, Unix seconds'),
  until: secondsParam.describe('created at this time or earlier, Unix seconds'),
  limit: limitParam(10_000, 50_000).describe('rows per kind of record; the newest ones are exported'),
});
export type ExportQuery = z.infer<typeof exportQuery>;

const rows = z.array(z.record(z.string(), z.union([z.string(), z.number(), z.null()])));

/** Fields that contain JSON are text in both formats. */
export const exportResponse = z.object({
  type: z.enum([...EXPORT_KINDS, 'all']),
  exported_at: z.iso.datetime(),
  data: z
    .union([rows, z.record(z.enum(EXPORT_KINDS), rows)])
    .describe('for `all`: an object with a list for each kind'),
  count: z.int().describe('rows of all kinds together'),
});
