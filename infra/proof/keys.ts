/**
 * The key that signs checkpoints of the log, and its name. A private key is LOG_SIGNING_KEY, or it is generated at the
 * first start and stored with the credentials. Every public key that ever signed is kept, so that each checkpoint can
 * be verified with the key of its time.
 *
 * One name stands for one log. When events covered by a signed checkpoint have been lost, the log continues under
 * another name: `name/2`, `name/3` …
 */
import { createPrivateKey, generateKeyPairSync, hash, type KeyObject } from 'node:crypto';
import type { Config } from '../config.ts';
import type { Database } from '../database/database.ts';
import { publicKeyOf, type VerifierKey } from './notes.ts';

/** Name of the private key in `credentials.secrets`. */
const SECRET = 'log_signing_key';

type Pool = Pick<Database['pool'], 'query'>;
export type KeySettings = Pick<Config, 'logSigningKey' | 'logOrigin'>;

export interface Signer {
  readonly origin: string;
  readonly privateKey: KeyObject;
  readonly verifierKey: VerifierKey;
}

/** A public key that has signed, or may have. */
export interface KnownKey extends VerifierKey {
  /** How many of the events signed under this name still exist; null: all. */
  readonly kept: number | null;
}

/** @param make creates and stores a missing key, as the first start does */
export async function openSigner(pool: Pool, settings: KeySettings, make: boolean): Promise<Signer | undefined> {
  const privateKey = settings.logSigningKey
    ? createPrivateKey(settings.logSigningKey)
    : ((await storedKey(pool)) ?? (make ? await makeKey(pool) : undefined));
  if (!privateKey) return undefined;
  const publicKey = publicKeyOf(privateKey);
  const known = await knownKeys(pool);
  const base = settings.logOrigin ?? known.at(-1)?.name ?? `signalbox/${hash('sha256', publicKey).slice(0, 16)}`;
  const origin = originAfter(base, known);
  const verifierKey = { name: origin, publicKey };
  const isKnown = known.some((key) => key.name === origin && key.publicKey.equals(publicKey));
  if (make && !isKnown) {
    await pool.query(
      `INSERT INTO credentials.log_keys (origin, public_key, created_at) VALUES ($1, $2, $3)
       ON CONFLICT (origin, public_key) DO NOTHING`,
      [origin, publicKey, Date.now()],
    );
  }
  return { origin, privateKey, verifierKey };
}

/** The first of `base`, `base/2`, `base/3` … that no lost log has used. The base is the name of the first key. */
function originAfter(base: string, known: readonly KnownKey[]): string {
  const retired = new Set(known.filter(({ kept }) => kept !== null).map(({ name }) => name));
  let origin = base;
  for (let n = 2; retired.has(origin); n++) origin = `${base}/${n}`;
  return origin;
}

/** Public keys, the newest first. */
export async function knownKeys(pool: Pool): Promise<readonly KnownKey[]> {
  const { rows } = await pool.query(
    `SELECT origin AS name, public_key AS "publicKey", kept FROM credentials.log_keys
     ORDER BY retired_at IS NOT NULL, created_at DESC, origin, public_key`,
  );
  return rows as KnownKey[];
}

/** Continues the log under another origin. @param kept how many events of this one are unchanged */
export async function retireOrigin(pool: Pool, origin: string, kept: number): Promise<void> {
  await pool.query('UPDATE credentials.log_keys SET retired_at = $2, kept = $3 WHERE origin = $1 AND kept IS NULL', [
    origin,
    Date.now(),
    kept,
  ]);
}

async function storedKey(pool: Pool): Promise<KeyObject | undefined> {
  const { rows } = await pool.query('SELECT value FROM credentials.secrets WHERE name = $1', [SECRET]);
  const [found] = rows as { value: Buffer }[];
  return found && createPrivateKey({ key: found.value, format: 'der', type: 'pkcs8' });
}

/** If several processes generate a key, one stores it, and all use that one. */
async function makeKey(pool: Pool): Promise<KeyObject | undefined> {
  const value = generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' });
  await pool.query(
    'INSERT INTO credentials.secrets (name, value, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING',
    [SECRET, value, Math.floor(Date.now() / 1_000)],
  );
  return storedKey(pool);
}
