/** `signalbox verify`: finds alterations of the log, of a signed export of it, or of a backup. */
import { readFile, stat } from 'node:fs/promises';
import type { Command } from 'commander';
import { AlteredBundleError } from '../../shared/errors.ts';
import { readConfig } from '../config.ts';
import { identitiesIn, keyFileIn } from '../credentials/backup-key.ts';
import { type VerifiedBundle, verifyBundle } from '../proof/bundle.ts';
import type { Verified } from '../proof/verification.ts';
import { verifyLog } from '../proof/verify-log.ts';
import { type Container, openContainer } from '../tools/container.ts';
import { withProgress } from './progress.ts';
import { counted, withCore } from './with-core.ts';

interface Options {
  readonly bundle?: string;
  readonly key?: string;
  readonly identity?: string;
}

/** Exit code: the log, or a bundle, differs from what was signed. */
const ALTERED = 3;

export function addVerify(program: Command): void {
  program
    .command('verify')
    .description('compare the log, a signed export or a backup with its checkpoints; exit code 3 when it was altered')
    .option(
      '--bundle <path>',
      'a folder that export-events --signed has written, or the file of a backup; needs no store and no service',
    )
    .option('--key <file>', 'verifier key that you trust, for --bundle; otherwise the key of the bundle itself')
    .option('--identity <file>', 'the key that opens a backup; default: backup-key.txt in DATA_DIR')
    .action(async ({ bundle, ...options }: Options) => {
      if (options.key !== undefined && bundle === undefined)
        throw new Error('--key is for --bundle: the configured log is verified with the keys in its database.');
      await (bundle === undefined ? verifyConfigured() : verifyOutside(bundle, options));
    });
}

async function verifyConfigured(): Promise<void> {
  const { result: verified } = await withProgress(undefined, ({ onProgress }) =>
    withCore(({ database, eventLog, config }) =>
      verifyLog(database, eventLog, config, (events, target) =>
        onProgress({ phase: 'verifying', events, position: events, target }),
      ),
    ).catch((error: unknown) => {
      if (!(error instanceof AlteredBundleError)) throw error;
      isUnaltered({ findings: [error.message], remarks: [] });
      return undefined;
    }),
  );
  if (!verified) return;
  report(verified, verified.origin);
  if (verified.checkpoints === 0 && verified.findings.length === 0)
    console.log('No checkpoint has been signed yet: the events were compared with their leaves only.');
}

async function readKey(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`The file given with --key cannot be read: ${file} (${error.code}).`, { cause: error });
  });
}

/** Opens a backup with the keys in a file; by default, with those in the data directory. */
export async function openBackup(
  file: string,
  { identity, key }: Pick<Options, 'identity' | 'key'>,
  onProgress?: (events: number) => void,
): Promise<Container> {
  const keyFile = identity ?? keyFileIn(readConfig(process.env).dataDir);
  const identities = await identitiesIn(keyFile);
  if (identities.length === 0) {
    throw new Error(
      `${keyFile} holds no key that opens backups. Pass a copy of backup-key.txt of the deployment, or the secret key that belongs to BACKUP_RECIPIENTS, as --identity FILE.`,
    );
  }
  return openContainer(file, identities, key === undefined ? undefined : await readKey(key), onProgress);
}

async function verifyOutside(path: string, { key, identity }: Options): Promise<void> {
  const isFile = (await stat(path).catch(() => undefined))?.isFile();
  const trusted = key === undefined ? undefined : await readKey(key);
  const { result: verified } = await withProgress(undefined, async ({ onProgress }): Promise<VerifiedBundle> => {
    const onEvents = (events: number) => onProgress({ phase: 'verifying', events, position: events, target: 0 });
    if (!isFile) return verifyBundle(path, trusted, { onProgress: onEvents });
    const container = await openBackup(path, { key, identity }, onEvents);
    await container.close();
    return container.verified;
  });
  report(verified, verified.origin, verified.first);
  if (verified.signed < verified.size)
    console.log(`${counted(verified.size - verified.signed, 'event')} after the last checkpoint are not signed.`);
  if (trusted === undefined) {
    console.log(
      `The key came from the bundle itself, so the author of the bundle may have created it. Compare it with one that you trust, or pass that with --key:\n${verified.ownKey}`,
    );
  }
}

/** Prints the findings, if there are any. */
export function isUnaltered({ findings, remarks }: Pick<Verified, 'findings' | 'remarks'>): boolean {
  for (const finding of findings) console.log(`ALTERED: ${finding}`);
  for (const remark of remarks) console.log(remark);
  if (findings.length > 0) process.exitCode = ALTERED;
  return findings.length === 0;
}

/** @param first the number of the first event */
function report(verified: Verified, origin: string | undefined, first = 0): void {
  if (!isUnaltered(verified)) return;
  const { size, root, checkpoints } = verified;
  console.log(
    `Unchanged: ${counted(size - first, 'event')}${first > 0 ? ` from event ${first} on` : ''}, ${counted(checkpoints, 'checkpoint')}${origin === undefined ? '' : ` of ${origin}`}`,
  );
  console.log(`Root ${root.toString('base64')}`);
}
