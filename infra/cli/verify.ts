/** `signalbox verify`: finds alterations of the log, or of a signed export of it. */
import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { verifyBundle } from '../proof/bundle.ts';
import type { Verified } from '../proof/verification.ts';
import { verifyLog } from '../proof/verify-log.ts';
import { withProgress } from './progress.ts';
import { counted, withCore } from './with-core.ts';

interface Options {
  readonly bundle?: string;
  readonly key?: string;
}

/** Exit code: the log, or a bundle, differs from what was signed. */
const ALTERED = 3;

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
  const { result: verified } = await withProgress(undefined, ({ onProgress }) =>
    withCore(({ database, eventLog, config }) =>
      verifyLog(database, eventLog, config, (events, target) =>
        onProgress({ phase: 'verifying', events, position: events, target }),
      ),
    ),
  );
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
  const { result: verified } = await withProgress(undefined, ({ onProgress }) =>
    verifyBundle(folder, trusted, (events) => onProgress({ phase: 'verifying', events, position: events, target: 0 })),
  );
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
    `Unchanged: ${counted(size, 'event')}, ${counted(checkpoints, 'checkpoint')}${origin === undefined ? '' : ` of ${origin}`}`,
  );
  console.log(`Root ${root.toString('base64')}`);
}
