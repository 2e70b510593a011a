/** `signalbox export-events`: writes the log as JSON lines, with a hash that proves what was exported. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { dataExported } from '../../shared/events/admin/export.ts';
import type { Core } from '../core.ts';
import { cliContext, counted, withCore } from './with-core.ts';

interface Options {
  readonly after: number;
  readonly until?: number;
  readonly stream?: string;
  readonly type?: string;
  readonly reveal?: boolean;
  readonly output?: string;
}

function position(value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new InvalidArgumentError('It must be a log position (a whole number).');
  return Number(value);
}

/** One line per event, in log order. */
async function* lines(core: Core, options: Options, count: (events: number) => void): AsyncGenerator<string> {
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
      const { id, stream, revision, type, data, meta } = options.reveal ? await core.store.decode(event) : event;
      text += `${JSON.stringify({ position: event.position, id, stream, revision, type, data, meta })}\n`;
      count(++written);
    }
    if (text !== '') yield text;
  }
}

export function addExportEvents(program: Command): void {
  program
    .command('export-events')
    .description('write the event log as JSON lines; personal fields stay sealed unless --reveal')
    .option('--after <position>', 'only events after this position', position, 0)
    .option('--until <position>', 'only events up to this position', position)
    .option('--stream <name>', 'only events of this stream')
    .option('--type <type>', 'only events of this type')
    .option('--reveal', 'decrypt personal fields')
    .option('--output <file>', 'write to this file, which appears once it is complete')
    .action(async (options: Options) => {
      const hash = createHash('sha256');
      let events = 0;
      await withCore(
        async (core) => {
          const source = Readable.from(
            lines(core, options, (count) => {
              events = count;
            }),
          );
          const hashed = async function* (chunks: AsyncIterable<string>) {
            for await (const chunk of chunks) {
              hash.update(chunk);
              yield chunk;
            }
          };
          if (options.output) {
            const partial = `${options.output}.partial`;
            const file = createWriteStream(partial, { mode: 0o600, flush: true });
            file.once('error', (error: NodeJS.ErrnoException) => {
              error.message = `${options.output} cannot be written: ${error.message}. Choose another file for --output.`;
            });
            await pipeline(source, hashed, file);
            await rename(partial, options.output);
          } else {
            await pipeline(source, hashed, process.stdout, { end: false });
          }
          // The export itself is recorded and audited.
          const draft = dataExported.draft({ what: 'events', format: 'jsonl', rowCount: events });
          await core.commands.record('exports', cliContext(), [draft]);
        },
        { project: true },
      );
      console.error(`${counted(events, 'event')}, SHA-256 ${hash.digest('hex')}`);
    });
}
