/** `signalbox verify`: finds what was altered in the log, or in a signed export of it. */
import { readFile } from 'node:fs/promises';
import { SingleBar } from 'cli-progress';
import type { Command } from 'commander';
import { verifyBundle } from '../proof/bundle.ts';
import type { Verified } from '../proof/verification.ts';
import { verifyLog } from '../proof/verify-log.ts';
import { counted, withCore } from './with-core.ts';

interface Options {
  readonly bundle?: string;
  readonly key?: string;
}

/** The log, or a bundle, is not what was signed. */
const ALTERED = 3;
/** Without a terminal, progress is reported this often, milliseconds. */
const REPORT_EVERY_MS = 10_000;

export function addVerify(program: Command): void {
  program
    .command('verify')
    .description('compare the log, or a signed export, with its checkpoints; exit code 3 when it was altered')
    .option('--bundle <folder>', 'a folder that export-events --signed has written; needs no store and no service')
    .option('--key <file>', 'verifier key that you trust, for --bundle; otherwise the key of the bundle itself')
    .action(async ({ bundle, key }: Options) => {
      if (key !== undefined && bundle === undefined)
        throw new Error('--key is for --bundle: the configured log is verified with the keys in its database.');
      await (bundle === undefined ? verifyConfigured() : verifyFolder(bundle, key));
    });
}

async function verifyConfigured(): Promise<void> {
  const progress = showProgress('verifying');
  const verified = await withCore(({ database, eventLog, config }) =>
    verifyLog(database, eventLog, config, progress.tell),
  ).finally(progress.end);
  report(verified, verified.origin);
  if (verified.checkpoints === 0 && verified.findings.length === 0)
    console.log('No checkpoint has been signed yet: the events were compared with their leaves only.');
}

async function readKey(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`The file given with --key cannot be read: ${file} (${error.code}).`, { cause: error });
  });
}

async function verifyFolder(folder: string, keyFile: string | undefined): Promise<void> {
  const trusted = keyFile === undefined ? undefined : await readKey(keyFile);
  const progress = showProgress('verifying');
  const verified = await verifyBundle(folder, trusted, (events) => progress.tell(events, 0)).finally(progress.end);
  report(verified, verified.origin);
  if (trusted === undefined) {
    console.log(
      `The key came from the bundle itself, so the author of the bundle may have created it. Compare it with one that you trust, or pass that with --key:\n${verified.ownKey}`,
    );
  }
}

function report({ size, root, checkpoints, findings, remarks }: Verified, origin: string | undefined): void {
  for (const finding of findings) console.log(`ALTERED: ${finding}`);
  for (const remark of remarks) console.log(remark);
  if (findings.length > 0) {
    process.exitCode = ALTERED;
    return;
  }
  console.log(
    `Whole: ${counted(size, 'event')}, ${counted(checkpoints, 'checkpoint')}${origin === undefined ? '' : ` of ${origin}`}`,
  );
  console.log(`Root ${root.toString('base64')}`);
}

/** Progress on stderr: a bar on a terminal, else a line from time to time. */
export function showProgress(phase: string) {
  const begun = performance.now();
  let reportedAt = begun;
  let bar: SingleBar | undefined;
  return {
    /** @param total 0: unknown */
    tell(events: number, total: number): void {
      const rate = Math.round((events * 1_000) / Math.max(performance.now() - begun, 1));
      if (process.stderr.isTTY) {
        if (!bar) {
          const share = total > 0 ? '[{bar}] {percentage}% | ' : '';
          const format = `${phase} ${share}{value} events, {rate}/s`;
          bar = new SingleBar({ format, stream: process.stderr, clearOnComplete: true });
          bar.start(Math.max(total, 1), 0, { rate });
        }
        bar.setTotal(Math.max(total, events, 1));
        bar.update(events, { rate });
      } else if (performance.now() - reportedAt > REPORT_EVERY_MS) {
        reportedAt = performance.now();
        console.error(`${phase}: ${counted(events, 'event')}, ${rate}/s`);
      }
    },
    end: () => bar?.stop(),
  };
}
