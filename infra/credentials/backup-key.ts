/**
 * The keys of backups (https://age-encryption.org/v1). Backups are encrypted for the public keys in BACKUP_PUBLIC_KEY;
 * without this setting, for a key that the first backup makes and that all processes share.
 */
import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { Database } from '../database/database.ts';

/** Name of the own key in `credentials.secrets`. */
const SECRET = 'backup_key';
const FILE = 'backup-key.txt';

type Pool = Pick<Database['pool'], 'query'>;

/** A key pair: `identity`, which is secret, opens what was encrypted for `recipient`. */
export interface BackupKey {
  readonly identity: string;
  readonly recipient: string;
}

/** The text of a key file, as `age-keygen` writes it. */
export const keyFileText = ({ identity, recipient }: BackupKey): string =>
  `# Opens the backups of this deployment: keep a copy away from them.\n# public key: ${recipient}\n${identity}\n`;

/** The file with the own key in a data directory. */
export const keyFileIn = (dataDir: string): string => join(dataDir, FILE);

/** The own key. It is made if it does not exist; if several processes make one, one is stored and all use that. */
export async function ownBackupKey(pool: Pool): Promise<BackupKey> {
  const { generateX25519Identity, identityToRecipient } = await import('age-encryption');
  const stored = async () => {
    const { rows } = await pool.query('SELECT value FROM credentials.secrets WHERE name = $1', [SECRET]);
    return (rows[0] as { value: Buffer } | undefined)?.value.toString();
  };
  let identity = await stored();
  if (identity === undefined) {
    await pool.query(
      'INSERT INTO credentials.secrets (name, value, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING',
      [SECRET, Buffer.from(await generateX25519Identity()), Math.floor(Date.now() / 1_000)],
    );
    identity = (await stored()) as string;
  }
  return { identity, recipient: await identityToRecipient(identity) };
}

/**
 * The public keys for which a backup is encrypted. The own key is also written to a file in the data directory, which
 * `signalbox restore` reads and operators copy.
 */
export async function backupRecipients(
  pool: Pool,
  { backupPublicKeys: given, dataDir }: Pick<Config, 'backupPublicKeys' | 'dataDir'>,
): Promise<readonly string[]> {
  if (given.length > 0) return given;
  const key = await ownBackupKey(pool);
  const file = keyFileIn(dataDir);
  if (!(await identitiesIn(file)).includes(key.identity)) {
    await mkdir(dataDir, { recursive: true });
    await appendFile(file, keyFileText(key), { mode: 0o600 });
  }
  return [key.recipient];
}

/** The secret keys in a key file; none if there is no such file. */
export async function identitiesIn(file: string): Promise<readonly string[]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  return text.split(/\s*\n\s*/).filter((line) => line.startsWith('AGE-SECRET-KEY-'));
}
