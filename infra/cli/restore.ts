/** `signalbox restore`: writes a backup into empty stores. */
import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { openCore } from '../core.ts';
import { createLogger } from '../logging.ts';
import { readBackup, restoreBackup } from '../tools/backup.ts';
import { refuseRunning } from './copy-log.ts';
import { counted } from './with-core.ts';

export function addRestore(program: Command): void {
  program
    .command('restore')
    .description('write a backup into the configured stores, which must be empty')
    .argument('<file>', 'a file that POST /api/backup has written')
    .action(async (file: string) => {
      const config = readConfig(process.env);
      // A file that is not whole is refused before stores are opened, and made where there are none.
      const contents = await readBackup(file);
      const stop = new AbortController();
      const interrupt = () => stop.abort(new Error('Interrupted; empty the stores before you restore again.'));
      process.once('SIGINT', interrupt);
      process.once('SIGTERM', interrupt);
      const core = await openCore(config, createLogger('warn', 'stderr'));
      try {
        await refuseRunning(core.database, 'the configured database');
        const { events, sha256, rows } = await restoreBackup(contents, core, { signal: stop.signal });
        console.log(`${counted(events, 'event')} restored and compared`);
        for (const [table, count] of Object.entries(rows)) console.log(`${counted(count, 'row')} of ${table}`);
        console.log(`SHA-256 of the events in the backup ${sha256}`);
        console.log('Read models are built when the service first starts.');
      } finally {
        process.off('SIGINT', interrupt);
        process.off('SIGTERM', interrupt);
        await core.close();
      }
    });
}
