/** Backups of the whole deployment. Stream: `backups`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const backupCreated = defineEvent({
  type: 'BackupCreated',
  doc: 'A backup was written: the whole log, with its credentials and keys.',
  schema: z.object({
    name: z.string(),
    /** Bytes. */
    size: z.int().nonnegative(),
    events: z.int().nonnegative(),
    /** Hash of the events, as `signalbox restore` shows it. */
    sha256: z.string(),
  }),
  // On a schedule, the service itself creates backups.
  audit: ({ data, meta }) => ({
    action: meta.actor.type === 'system' ? 'auto_backup' : 'backup_create',
    detail: { name: data.name, size: data.size },
  }),
});

export const backupDeleted = defineEvent({
  type: 'BackupDeleted',
  doc: 'The file of a backup was deleted.',
  schema: z.object({ name: z.string() }),
  audit: ({ data }) => ({ action: 'backup_delete', detail: { name: data.name } }),
});
