/** `signalbox start`: runs one process of the service until it is told to stop. */
import type { Command } from 'commander';
import { Option } from 'commander';
import { type Config, PROCESS_ROLES, type ProcessRole, readConfig } from '../config.ts';
import { type Database, openConfigured } from '../database/database.ts';
import { createLogger, type Logger } from '../logging.ts';

/** How long the end may take beyond what requests in flight have, milliseconds: stores that are silent would hold it up. */
const SILENCE_MS = 5_000;

/** A frame around lines that are shown once and never again. */
export function box(lines: readonly string[]): string {
  const width = Math.max(...lines.map((line) => line.length));
  const bar = '─'.repeat(width + 2);
  return [`┌${bar}┐`, ...lines.map((line) => `│ ${line.padEnd(width)} │`), `└${bar}┘`].join('\n');
}

/**
 * Has the database opened by its own thread while this one loads the rest of the code. That it cannot be opened is
 * `startService`'s to report.
 */
async function openingDatabase(config: Config, log: Logger): Promise<{ readonly opened: Promise<Database> }> {
  let launched = (): void => undefined;
  const waiting = new Promise<void>((resolve) => {
    launched = resolve;
  });
  const opened = openConfigured(config, log, { launched });
  opened.catch(launched);
  await waiting;
  return { opened };
}

export function addStart(program: Command): void {
  program
    .command('start')
    .description('run the service')
    .addOption(new Option('--role <role>', 'what this process does').choices(PROCESS_ROLES).default('all'))
    .action(async (options: { role: ProcessRole }) => {
      const config = readConfig(process.env);
      const log = createLogger(config.logLevel);
      process.on('unhandledRejection', (error) => {
        log.fatal({ err: error }, 'a failure that nothing handled; ending');
        process.exit(1);
      });
      let end = (reason: string, _code: number): void => {
        log.info({ reason }, 'stopping before the start was done');
        process.exit(0);
      };
      process.on('SIGTERM', () => end('SIGTERM', 0));
      process.on('SIGINT', () => end('SIGINT', 0));
      const database = await openingDatabase(config, log);
      const { startService } = await import('../main.ts');
      const service = await startService(config, log, options.role, database.opened);
      // A process without HTTP waits for stores that are away with timers that do not hold it; this one does.
      setInterval(() => undefined, 2 ** 30);
      if (service.shown.length > 0) {
        console.log(box([...service.shown, '', 'Shown this once. Keep them; only hashes are stored.']));
      }
      if (service.url)
        console.log(`Signalbox is ready at ${service.url} (interactive documentation at ${service.url}/docs)`);

      let stopping = false;
      const stop = (reason: string, code: number) => {
        if (stopping) process.exit(code || 1);
        stopping = true;
        log.info({ reason }, 'stopping: requests in flight are finished first; a second signal ends at once');
        setTimeout(() => {
          log.warn('stopping took too long, because a store does not answer; ending without it');
          process.exit(1);
        }, config.shutdownTimeoutMs + SILENCE_MS);
        service.close().then(
          () => process.exit(code),
          (error) => {
            log.error({ err: error }, 'stopping failed');
            process.exit(1);
          },
        );
      };
      end = stop;
      const gone = (error: unknown) => {
        log.fatal({ err: error }, 'the store under the service is gone');
        stop('store gone', 1);
      };
      service.failed.then(gone, gone);
    });
}
