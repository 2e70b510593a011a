/** `signalbox export-events`: writes the log as JSON lines, with a hash that proves the exported content. */
import { createHash, type Hash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { readPersonal } from '../../commands/auth/people.ts';
import type { EventStore } from '../../shared/event-store.ts';
import { dataExported } from '../../shared/events/admin/export.ts';
import type { Core } from '../core.ts';
import { currentNote } from '../log-index/current.ts';
import { writeBundle } from '../proof/bundle.ts';
import { withProgress } from './progress.ts';
import { cliContext, counted, withCore } from './with-core.ts';

interface Options {
  readonly after: number;
  readonly until?: number;
  readonly stream?: string;
  readonly type?: string;
  readonly reveal?: boolean;
  readonly output?: string;
  readonly signed?: boolean;
}

function position(value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new InvalidArgumentError('It must be a log position (a whole number).');
  return Number(value);
}

/** One line per event, in log order. */
async function* lines(
  core: Core,
  options: Options,
  reveal: EventStore['reveal'] | undefined,
  count: (events: number) => void,
): AsyncGenerator<string> {
  const end = Math.min(options.until ?? Number.MAX_SAFE_INTEGER, await core.eventLog.head());
  let written = 0;
  for await (const batch of core.eventLog.readAll({ from: options.after })) {
    let text = '';
    for (const event of batch) {
      if (event.position > end) {
        if (text !== '') yield text;
        return;
      }
      if (options.stream !== undefined && event.stream !== options.stream) continue;
      if (options.type !== undefined && event.type !== options.type) continue;
      const { id, stream, revision, type } = event;
      const { data, meta } = reveal ? await reveal(event) : event;
      text += `${JSON.stringify({ position: event.position, id, stream, revision, type, data, meta })}\n`;
      count(++written);
    }
    if (text !== '') yield text;
  }
}

/** @throws Error for options that are not allowed with a signed export */
async function exportSigned({ output, after, until, stream, type, reveal }: Options): Promise<void> {
  if (output === undefined) throw new Error('--signed writes a folder: pass it as --output FOLDER.');
  if (after > 0 || until !== undefined || stream !== undefined || type !== undefined || reveal) {
    throw new Error(
      'A signed export has all events as they are stored: use it without --after, --until, --stream, --type and --reveal.',
    );
  }
  const { result } = await withProgress(undefined, ({ onProgress }) =>
    withCore(
      async (core) => {
        const note = await currentNote(core);
        if (!note) throw new Error('no checkpoint of the log has been signed yet. Start the service, and try again.');
        const written = await writeBundle(core.database, core.eventLog, note, output, {
          onEvent: (events) => {
            if (events % 1_000 === 0) onProgress({ phase: 'exporting', events, position: events, target: note.size });
          },
        });
        await recordExport(core, 'bundle', written.events);
        return { ...written, origin: note.origin };
      },
      { project: true },
    ),
  );
  console.error(`${counted(result.events, 'event')} under a checkpoint of ${result.origin}`);
  if (result.different === undefined) return;
  console.error(`Event ${result.different} is not what its leaf says: the log was altered. See: signalbox verify`);
  process.exitCode = 3;
}

/** The export itself is recorded and audited. */
async function recordExport(core: Core, format: string, rowCount: number): Promise<void> {
  await core.commands.record('exports', cliContext(), [
    dataExported.draft({ what: 'events', format, row_count: rowCount }),
  ]);
}

/** Writes to a file, which appears once it is complete, or to stdout. */
async function writeLines(text: AsyncGenerator<string>, hash: Hash, output: string | undefined): Promise<void> {
  const hashed = async function* (chunks: AsyncIterable<string>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      yield chunk;
    }
  };
  const source = Readable.from(text);
  if (output === undefined) {
    await pipeline(source, hashed, process.stdout, { end: false });
    return;
  }
  const partial = `${output}.partial`;
  // Created anew: in a shared directory, another user may have put a link there.
  await rm(partial, { force: true });
  const file = createWriteStream(partial, { flags: 'wx', mode: 0o600, flush: true });
  file.once('error', (error: NodeJS.ErrnoException) => {
    error.message = `${output} cannot be written: ${error.message}. Choose another file for --output.`;
  });
  await pipeline(source, hashed, file);
  await rename(partial, output);
}

/** With `--reveal`, what was opened is recorded. */
function withReveal(
  core: Core,
  { after, until, stream, type, reveal }: Options,
  work: (reveal: EventStore['reveal'] | undefined) => Promise<void>,
): Promise<void> {
  if (!reveal) return work(undefined);
  const given = Object.entries({ after, until, stream, type }).filter(([, value]) => value !== undefined);
  const filter = Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
  return readPersonal(core.commands, cliContext(), core.store, filter, (opening) => work(opening.reveal));
}

export function addExportEvents(program: Command): void {
  program
    .command('export-events')
    .description('write the event log as JSON lines; personal fields stay sealed unless --reveal')
    .option('--after <position>', 'only events after this position', position, 0)
    .option('--until <position>', 'only events up to this position', position)
    .option('--stream <name>', 'only events of this stream')
    .option('--type <type>', 'only events of this type')
    .option('--reveal', 'decrypt the fields of people, which is audited; secrets stay sealed')
    .option('--output <file>', 'write to this file, which appears once it is complete; with --signed, a folder')
    .option(
      '--signed',
      'write a folder that `signalbox verify --bundle` checks anywhere: the events under the latest checkpoint, with the checkpoint',
    )
    .action(async (options: Options) => {
      if (options.signed) {
        await exportSigned(options);
        return;
      }
      const hash = createHash('sha256');
      let events = 0;
      await withCore(
        async (core) => {
          await withReveal(core, options, (reveal) =>
            writeLines(
              lines(core, options, reveal, (count) => {
                events = count;
              }),
              hash,
              options.output,
            ),
          );
          await recordExport(core, 'jsonl', events);
        },
        { project: true },
      );
      console.error(`${counted(events, 'event')}, SHA-256 ${hash.digest('hex')}`);
    });
}
