/** Old records removed from the lists; events are never removed. Streams: `cleanup`, `retention-<workspace>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const CLEANUP_STREAM = 'cleanup';

export const oldRecordsRemoved = defineEvent({
  type: 'OldRecordsRemoved',
  doc: 'The daily cleanup removed records that were older than the retention settings allow. The events before this one name them; the log keeps their history.',
  schema: z.object({ notifications: z.int().nonnegative() }),
  audit: ({ data }) => ({ action: 'auto_cleanup', detail: { total_deleted: data.notifications } }),
});

/** Read models whose old rows are removed. */
export const RETAINED = ['activities', 'notifications', 'pipeline_runs', 'token_usage', 'audit_log'] as const;
export type Retained = (typeof RETAINED)[number];

export const recordsPurged = defineEvent({
  type: 'RecordsPurged',
  doc: 'Expired rows of a read model were removed. The event names each row, so that every rebuild removes the same ones.',
  schema: z.object({
    table: z.enum(RETAINED),
    ids: z.array(z.int().positive()),
    /** Activities only: their number per kind, by which the stored totals decrease. */
    counts: z.array(z.object({ type: z.string(), actor: z.string(), entity_type: z.string(), count: z.int() })),
    /** Activities only: their rows in the search. */
    phrases: z.array(z.object({ phrase: z.int(), created_at: z.int(), id: z.int() })),
  }),
});

export const auditEntriesPurged = defineEvent({
  type: 'AuditEntriesPurged',
  doc: 'Expired entries were removed from the audit trail. The event names each entry and counts them by action, but does not say whom they concern, because personal names in the log are sealed. The events behind the entries remain in the log.',
  schema: z.object({
    ids: z.array(z.int().positive()),
    counts: z.array(z.object({ action: z.string(), count: z.int().positive() })),
  }),
});

export const retentionApplied = defineEvent({
  type: 'RetentionApplied',
  doc: 'A removal of expired rows ended.',
  schema: z.object({
    cause: z.enum(['request', 'schedule']),
    results: z.array(
      z.object({
        table: z.enum(RETAINED),
        deleted: z.int(),
        /** Unix seconds: rows created before this time were removed. */
        cutoff: z.int(),
        retention_days: z.int(),
      }),
    ),
  }),
  audit: ({ data }) => {
    const results = data.results.map(({ table, deleted, cutoff, retention_days }) => ({
      table,
      deleted,
      cutoff_date: new Date(cutoff * 1_000).toISOString().slice(0, 10),
      retention_days,
    }));
    return {
      action: data.cause === 'request' ? 'data_cleanup' : 'auto_cleanup',
      detail: { total_deleted: results.reduce((sum, { deleted }) => sum + deleted, 0), results },
    };
  },
});
