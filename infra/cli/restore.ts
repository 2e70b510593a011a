/** `signalbox restore`: writes a backup into empty stores. */
import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { openCore } from '../core.ts';
import { createLogger } from '../logging.ts';
import { type Note, NoteError, parseNote } from '../proof/notes.ts';
import { readBackup, restoreBackup } from '../tools/backup.ts';
import { refuseRunning } from './copy-log.ts';
import { withProgress } from './progress.ts';
import { counted } from './with-core.ts';

export function addRestore(program: Command): void {
  program
    .command('restore')
    .description('write a backup into the configured stores, which must be empty')
    .argument('<file>', 'a file that POST /api/backup has written')
    .option(
      '--checkpoint <file>',
      'the checkpoint of the log that was signed last: if the backup has all events under it, the log keeps its origin',
    )
    .action(async (file: string, options: { checkpoint?: string }) => {
      const newest = options.checkpoint === undefined ? undefined : await checkpointIn(options.checkpoint);
      const config = readConfig(process.env);
      // An incomplete file is refused before stores are opened or created.
      const contents = await readBackup(file);
      const core = await openCore(config, createLogger('warn', 'stderr'));
      try {
        await refuseRunning(core.database, 'the configured database');
        const { result } = await withProgress('Interrupted; empty the stores before you restore again.', (watched) =>
          restoreBackup(contents, core, { ...watched, newest }),
        );
        const { events, sha256, rows, keepsOrigin } = result;
        console.log(`${counted(events, 'event')} restored and compared`);
        for (const [table, count] of Object.entries(rows)) console.log(`${counted(count, 'row')} of ${table}`);
        console.log(`SHA-256 of the events in the backup ${sha256}`);
        if (keepsOrigin === false) {
          console.log(
            `The log goes on under another origin: ${newest ? 'the backup lacks events under the given checkpoint.' : 'events that were signed after the backup may be lost. If none are, restore with --checkpoint and the last checkpoint.'} Earlier checkpoints stay valid with their own key.`,
          );
        }
        console.log('Read models are built when the service first starts.');
      } finally {
        await core.close();
      }
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
