/** Backups of the whole deployment. */
import { createBackup, deleteBackup } from '../../../commands/admin/backup.ts';
import { settingValues } from '../../../queries/admin/settings.ts';
import { backupBody, backupResponse, backupsResponse } from '../../../shared/contract/admin/backup.ts';
import { successResponse } from '../../../shared/contract/common.ts';
import { showPosition } from '../../http/consistency.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const list = defineRoute({
  method: 'get',
  path: '/api/backup',
  noPast: 'backups are files',
  summary: 'List the backups of this process, newest first, and how far a running one is',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  responses: { 200: { description: 'Files', schema: backupsResponse } },
  async respond({ services, context }) {
    const head = await services.store.log.head();
    const files = await services.backups.list();
    const running = services.backups.progress();
    const body = {
      backups: files.map(({ name, size, createdAt }) => ({ name, size, created_at: createdAt })),
      ...(running && {
        running: { started_at: running.startedAt, position: running.position, head: running.head ?? null },
      }),
    };
    // Files and progress are not in the log.
    showPosition(context, head, false);
    return body;
  },
});

const create = defineRoute({
  method: 'post',
  path: '/api/backup',
  summary: 'Write a backup',
  description:
    'The file holds the whole log, credentials and the keys that open personal data. It is encrypted: `signalbox restore` needs the key, which `signalbox backup-key` prints. It is written to the data directory of the process that handles the request; the setting `general.backup_retention_count` says how many are kept.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  limit: 'backup',
  responses: { 200: { description: 'The file', schema: backupResponse } },
  async respond({ services, command }) {
    const { reads, settings, commands, backups } = services;
    const count = 'general.backup_retention_count';
    const keep = Number((await settingValues(reads, settings, [count]))[count]);
    const { name, path, size, createdAt, recipients } = await createBackup(commands, command, backups, keep);
    const backup = { name, size, created_at: createdAt };
    return { success: true, path, size_bytes: size, encrypted_for: [...recipients], backup };
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/backup',
  summary: 'Delete a backup',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  limit: 'backup',
  body: backupBody,
  refuses: [404],
  responses: { 200: { description: 'Deleted', schema: successResponse } },
  async respond({ body, services, command }) {
    await deleteBackup(services.commands, command, services.backups, body.name);
    return { success: true };
  },
});

export const backupRoutes: readonly Route[] = [list, create, remove];
