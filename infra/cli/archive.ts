/** `signalbox archive`: writes old parts of the log to signed bundles, and removes their contents from the database. */
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { archiveDirOf } from '../config.ts';
import { archiveParts, leavingUpTo, type Part, planArchive } from '../tools/archive.ts';
import { withProgress } from './progress.ts';
import { cliContext, counted, withCore } from './with-core.ts';

interface Options {
  /** Unix milliseconds. */
  readonly before: number;
  readonly dryRun?: boolean;
}

function time(value: string): number {
  const isMonth = /^\d{4}-\d{2}$/.test(value);
  const at = isMonth || /^\d{4}-\d{2}-\d{2}T[\d:.]+(Z|[+-]\d{2}:\d{2})$/i.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(at))
    throw new InvalidArgumentError('It must be a month such as 2026-01, or a time such as 2026-01-15T00:00:00Z.');
  if (at > Date.now()) throw new InvalidArgumentError('It must not be in the future: only what has ended is archived.');
  return at;
}

const described = ({ name, after, until }: Part, directory: string): string =>
  `${name}: ${counted(until - after, 'event')}, positions ${after + 1} to ${until}, in ${resolve(directory, name)}`;

const contents = (events: number): string => `The contents of ${counted(events, 'event')}`;

export function addArchive(program: Command): void {
  program
    .command('archive')
    .description(
      'write old months of the log to signed bundles in ARCHIVE_DIR, and remove their contents from the database; the bundles must stay there to be read',
    )
    .requiredOption('--before <month>', 'events from before this month (2026-01), or before a time in RFC 3339', time)
    .option('--dry-run', 'say what would be written and removed, and change nothing')
    .action(async ({ before, dryRun }: Options) => {
      await withCore(
        async (core) => {
          const archiveDir = archiveDirOf(core.config);
          const parts = await planArchive(core, before);
          for (const part of parts) console.log(described(part, archiveDir));
          if (parts.length === 0) console.log('There are no further events from before to write.');
          if (dryRun) {
            const { events, bytes } = await leavingUpTo(core.database, parts.at(-1)?.until ?? 0);
            console.log(`${contents(events)}, ${bytes} bytes of JSON, would leave the database. Nothing was changed.`);
            return;
          }
          const { result } = await withProgress(
            'Interrupted; run the same command again to continue.',
            ({ signal, onProgress }) =>
              archiveParts(core, cliContext(), parts, {
                signal,
                onProgress: (phase, position, target) => onProgress({ phase, events: position, position, target }),
              }),
          );
          console.log(`${contents(result.events)} left the database.`);
        },
        { project: true },
      );
    });
}
