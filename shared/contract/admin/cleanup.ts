/** Retention: how long rows are kept, what is too old, and its removal. */
import { z } from 'zod';
import { RETAINED } from '../../events/admin/cleanup.ts';

const NO_DAYS = 'must be a whole number from 1 to 36500';
const days = z
  .union(
    [
      z.int(),
      z
        .string()
        .regex(/^\d{1,5}$/)
        .transform(Number),
    ],
    { error: NO_DAYS },
  )
  .refine((value) => value >= 1 && value <= 36_500, NO_DAYS)
  .meta({ override: { type: 'integer', minimum: 1, maximum: 36_500 } });

export const cleanupBody = z.object({
  older_than_days: days.default(30).describe('applies to every table'),
  dry_run: z.boolean().default(false).describe('counts without removing anything'),
});

const counts = z.record(z.enum(RETAINED), z.int());

export const cleanupResponse = z.object({
  success: z.literal(true),
  deleted: counts.describe('rows by table; with dry_run those that would be'),
  dry_run: z.boolean(),
  total_deleted: z.int(),
  complete: z.boolean().describe('false: there were too many for one call; repeat it'),
  results: z.array(
    z.object({
      table: z.enum(RETAINED),
      deleted: z.int(),
      cutoff_date: z.string().describe('UTC, as 2026-01-31'),
      retention_days: z.int(),
    }),
  ),
});

export const retentionResponse = z.object({
  retention: z
    .object({
      activities: z.int(),
      auditLog: z.int(),
      logs: z.int(),
      notifications: z.int(),
      pipelineRuns: z.int(),
      tokenUsage: z.int(),
      gatewaySessions: z.int().describe('sessions last updated longer ago are not listed; their gateway keeps them'),
    })
    .describe('days; 0: kept forever'),
  preview: z.array(
    z.object({
      table: z.string(),
      retention_days: z.int(),
      cutoff_date: z.string().optional(),
      stale_count: z.int(),
      note: z.string().optional(),
    }),
  ),
});
