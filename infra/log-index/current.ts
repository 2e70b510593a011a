/** The index and the signed tree for commands of the command line, with every event. */
import type { LogIndex } from '../../shared/ports/history/events.ts';
import type { Core } from '../core.ts';
import { newestNote, signTree } from '../proof/checkpoints.ts';
import { startKeeper } from '../proof/keeper.ts';
import { knownKeys, openSigner } from '../proof/keys.ts';
import { type Note, signerOf } from '../proof/notes.ts';
import { createLogIndex } from './log-index.ts';

/** Time-out, because building a tree for a large log takes long, milliseconds. */
const TIMEOUT_MS = 24 * 3_600_000;

/** The index of the log with every event: updated here unless a service does it. */
export async function currentIndex(core: Core): Promise<LogIndex> {
  const { database, eventLog } = core;
  const index = createLogIndex({ database, eventLog, timeoutMs: TIMEOUT_MS });
  // An attached embedded database belongs to a service.
  const keeper = database.attached ? undefined : startKeeper({ ...core, signs: false });
  try {
    await index.settled();
  } finally {
    await keeper?.close();
  }
  return index;
}

/**
 * Updates the tree, and signs it if the key is available.
 *
 * The settings of the service may be missing here: a log that was signed with another key is left to the service.
 *
 * @returns the latest checkpoint, which may lack the newest events; undefined if there is none
 */
export async function currentNote(core: Core): Promise<Note | undefined> {
  const { database, config } = core;
  const { pool } = database;
  await currentIndex(core);
  const last = await newestNote(pool);
  if (last && !(await isOurs(pool, config, last))) return last;
  const signer = await openSigner(pool, config, true);
  if (signer) await signTree(pool, config, signer);
  return newestNote(pool);
}

/** Whether these settings signed the last checkpoint. */
async function isOurs(pool: Core['database']['pool'], config: Core['config'], last: Note): Promise<boolean> {
  const keys = await knownKeys(pool);
  const signed = signerOf(last, keys);
  const signer = await openSigner(pool, config, false);
  const isRetired = keys.some(({ name, kept }) => name === last.origin && kept !== null);
  const sameKey = signed !== undefined && signer?.verifierKey.publicKey.equals(signed.publicKey) === true;
  return sameKey && (isRetired || signer.origin === last.origin);
}
