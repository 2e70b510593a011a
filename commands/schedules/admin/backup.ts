/** Writes a backup every night, and removes the oldest ones. */
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../../shared/events/metadata.ts';
import { newId } from '../../../shared/ids.ts';
import type { Backups } from '../../../shared/ports/admin/backup.ts';
import { createBackup } from '../../admin/backup.ts';
import type { Commands } from '../../handler.ts';
import { scheduledContext } from '../../policies/policy.ts';
import { counted, EVERY_TEN_MINUTES_MS, isOn, type Schedule, type Setting } from '../schedule.ts';

export function backupSchedule(parts: {
  readonly commands: Commands;
  readonly backups: Backups;
  readonly setting: Setting;
}): Schedule {
  const { commands, backups, setting } = parts;
  return {
    id: 'auto_backup',
    kind: 'auto-backup',
    name: 'Write a backup',
    everyMs: EVERY_TEN_MINUTES_MS,
    dailyAt: 3,
    enabled: isOn(setting, 'general.auto_backup'),
    async run() {
      const keep = Number(await setting('general.backup_retention_count'));
      const context = scheduledContext(newId(), DEFAULT_TENANT, DEFAULT_WORKSPACE);
      const { name, events } = await createBackup(commands, context, backups, keep);
      return `${name} was written: ${counted(events, 'event', 'events')}.`;
    },
  };
}
