/**
 * `signalbox restore`: writes a backup into empty stores. `signalbox resume`: ends the pause that follows.
 * `signalbox backup-key`: the key that opens backups.
 */
import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { resumeDeployment } from '../../commands/admin/pause.ts';
import { readConfig } from '../config.ts';
import { openCore } from '../core.ts';
import { keyFileText, ownBackupKey } from '../credentials/backup-key.ts';
import { createLogger } from '../logging.ts';
import { type Note, NoteError, parseNote } from '../proof/notes.ts';
import { restoreBackup } from '../tools/backup.ts';
import { refuseRunning } from './copy-log.ts';
import { withProgress } from './progress.ts';
import { isUnaltered, openBackup } from './verify.ts';
import { cliContext, counted, withCore } from './with-core.ts';

interface Options {
  readonly identity?: string;
  readonly key?: string;
  readonly checkpoint?: string;
  readonly active?: boolean;
}

export function addRestore(program: Command): void {
  program
    .command('restore')
    .description('verify a backup and write it into the configured stores, which must be empty')
    .argument('<file>', 'a file that POST /api/backup has written')
    .option('--identity <file>', 'the key that opens it; default: backup-key.txt in DATA_DIR')
    .option('--key <file>', 'verifier key of the log that you trust; otherwise that of the backup itself')
    .option(
      '--checkpoint <file>',
      'the checkpoint of the log that was signed last: if the backup has all events under it, the log keeps its origin',
    )
    .option('--active', 'does not pause the deployment: calls leave and schedules run from its first start')
    .action(async (file: string, options: Options) => {
      const newest = options.checkpoint === undefined ? undefined : await checkpointIn(options.checkpoint);
      const config = readConfig(process.env);
      await withProgress('Interrupted; empty the stores before you restore again.', async (watched) => {
        // Verified before stores are opened or created.
        const container = await openBackup(file, options, (events) =>
          watched.onProgress({ phase: 'verifying', events, position: events, target: 0 }),
        );
        try {
          const { verified } = container;
          if (!isUnaltered(verified)) return;
          const core = await openCore(config, createLogger('warn', 'stderr'));
          try {
            await refuseRunning(core.database, 'the configured database');
            // Before the first event, so that an interrupted restore does not run either.
            if (!options.active) await core.pause.begin();
            const { events, rows, keepsOrigin } = await restoreBackup(container, core, { ...watched, newest });
            console.log(
              `${counted(events, 'event')} restored and compared, ${verified.signed} of them under a checkpoint`,
            );
            for (const [table, count] of Object.entries(rows ?? {}))
              console.log(`${counted(count, 'row')} of ${table}`);
            console.log(`SHA-256 of the events in the backup ${container.sha256}`);
            if (keepsOrigin === false) {
              console.log(
                `The log continues under another origin: ${newest ? 'the backup lacks events under the given checkpoint.' : 'events that were signed after the backup may be lost. If none are, restore with --checkpoint and the last checkpoint.'} Earlier checkpoints stay valid with their own key.`,
              );
            }
            console.log('Read models are built when the service first starts.');
            if (!options.active)
              console.log('It begins paused: no call leaves, and no schedule runs, until you run: signalbox resume');
          } finally {
            await core.close();
          }
        } finally {
          await container.close();
        }
      });
    });
  program
    .command('resume')
    .description('end the pause after a restore: calls leave, and schedules run')
    .action(async () => {
      await withCore(({ commands, pause }) => resumeDeployment(commands, cliContext(), pause), { project: true });
      console.log('Resumed: calls leave and schedules run, in every process within a second or two.');
    });
  program
    .command('backup-key')
    .description('print the key that opens the backups of this deployment: keep it away from them')
    .action(async () => {
      if (readConfig(process.env).backupPublicKeys.length > 0)
        throw new Error('Backups are encrypted for the keys in BACKUP_PUBLIC_KEY: only their secret halves open them.');
      process.stdout.write(await withCore(async ({ database }) => keyFileText(await ownBackupKey(database.pool))));
    });
}

async function checkpointIn(file: string): Promise<Note> {
  try {
    return parseNote(await readFile(file, 'utf8'));
  } catch (error) {
    if (error instanceof NoteError) throw new Error(`${file} is not a checkpoint: ${error.message}.`);
    throw error;
  }
}
