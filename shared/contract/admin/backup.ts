/** Backups: files that `signalbox restore` reads. */
import { z } from 'zod';
import { unixSeconds } from '../common.ts';

export const backupSchema = z
  .object({ name: z.string(), size: z.int().describe('bytes'), created_at: unixSeconds })
  .meta({ id: 'Backup' });

export const backupsResponse = z.object({
  backups: z.array(backupSchema),
  running: z
    .object({
      started_at: unixSeconds,
      position: z.int().describe('of the last event that is written'),
      head: z.int().nullable().describe('position of the last event that will be written; null until it is known'),
    })
    .optional()
    .describe('the backup that this process is writing; absent if there is none'),
});

export const backupResponse = z.object({
  success: z.literal(true),
  path: z.string().describe('of the file, on the host of the process that wrote it'),
  size_bytes: z.int(),
  encrypted_for: z.array(z.string()).describe('public keys of age; the secret half of any of them opens the file'),
  backup: backupSchema,
});

/** Names of backup files. */
export const BACKUP_NAME = /^mc-backup-\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d\.db$/;

export const backupBody = z.object({
  name: z.string().regex(BACKUP_NAME, 'must be the name of a backup, such as mc-backup-2026-01-31_03-00-00.db'),
});
