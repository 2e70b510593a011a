/** Backups: created and deleted; both are recorded. */
import { notFound } from '../../shared/errors.ts';
import { backupCreated, backupDeleted } from '../../shared/events/admin/backup.ts';
import type { Backups, WrittenBackup } from '../../shared/ports/admin/backup.ts';
import type { CommandContext, Commands } from '../handler.ts';

const STREAM = 'backups';

/** @param keep how many files are kept, this one included */
export async function createBackup(
  commands: Commands,
  context: CommandContext,
  backups: Pick<Backups, 'create'>,
  keep: number,
): Promise<WrittenBackup> {
  const written = await backups.create(keep);
  const { name, size, events, sha256 } = written;
  await commands.record(STREAM, context, [backupCreated.draft({ name, size, events, sha256 })]);
  return written;
}

/** @throws AppError 404 */
export async function deleteBackup(
  commands: Commands,
  context: CommandContext,
  backups: Pick<Backups, 'remove'>,
  name: string,
): Promise<void> {
  if (!(await backups.remove(name))) throw notFound('Backup');
  await commands.record(STREAM, context, [backupDeleted.draft({ name })]);
}
