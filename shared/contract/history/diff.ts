/** The differences between two moments of the log. */
import { z } from 'zod';
import { filterParam, limitParam } from '../common.ts';

/** Kinds of records that are compared. */
export const DIFF_RESOURCES = [
  'agents',
  'agent_texts',
  'tasks',
  'comments',
  'projects',
  'workflows',
  'pipelines',
  'alerts',
  'webhooks',
  'users',
] as const;
export type DiffResource = (typeof DIFF_RESOURCES)[number];

const moment = z.string().describe('a position of the log, or a time in RFC 3339');

const CURSOR = /^([a-z_]+)-(\d{1,15})$/;
const isResource = (name: string | undefined): name is DiffResource => DIFF_RESOURCES.some((one) => one === name);

export const diffQuery = z.object({
  from: moment.describe('a position of the log, or a time in RFC 3339; 0: before the first event'),
  to: moment,
  resource: z.enum(DIFF_RESOURCES).optional().describe('one kind of records; all if omitted'),
  id: filterParam
    .refine((text) => text === undefined || /^[1-9]\d{0,14}$/.test(text), 'must be a positive whole number')
    .transform((text) => (text === undefined ? undefined : Number(text)))
    .describe('the record with this id'),
  limit: limitParam(50),
  cursor: filterParam
    .refine((text) => text === undefined || isResource(CURSOR.exec(text)?.[1]), 'must be the next_cursor of a page')
    .transform((text) => {
      const [, resource, after] = CURSOR.exec(text ?? '') ?? [];
      return isResource(resource) ? { resource, after: Number(after) } : undefined;
    })
    .meta({ override: { type: 'string' } })
    .describe('`next_cursor` of the page before'),
});
export type DiffQuery = z.infer<typeof diffQuery>;

const fieldChange = z.object({ before: z.unknown(), after: z.unknown() });

export const recordChangeSchema = z
  .object({
    resource: z.enum(DIFF_RESOURCES),
    id: z.int(),
    change: z.enum(['added', 'removed', 'changed']),
    fields: z.record(z.string(), fieldChange).describe('those that differ; secrets are hidden'),
    events: z
      .array(z.string())
      .describe('ids of the events that changed the record, oldest first; of many, the last 100'),
  })
  .meta({ id: 'RecordChange' });
export type RecordChange = z.infer<typeof recordChangeSchema>;

export const diffResponse = z.object({
  from: z.int().describe('the position that is compared'),
  to: z.int(),
  changes: z.array(recordChangeSchema).describe('by resource and id; a page ends at 4 MB'),
  next_cursor: z.string().nullable(),
});
export type DiffResponse = z.infer<typeof diffResponse>;
