/** Old records that were removed from the lists. Stream: `cleanup`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const CLEANUP_STREAM = 'cleanup';

export const oldRecordsRemoved = defineEvent({
  type: 'OldRecordsRemoved',
  version: 1,
  doc: 'The daily cleanup has removed records from the lists that were older than the settings allow. Events before this one say which; what they said stays in the log.',
  schema: z.object({ notifications: z.int().nonnegative() }),
  audit: ({ data }) => ({ action: 'auto_cleanup', detail: { total_deleted: data.notifications } }),
});

export const cleanupEvents = [oldRecordsRemoved];
