/**
 * The credential store (`shared/ports/credentials.ts`) on the `credentials.*` tables.
 *
 * Sessions and keys are stored as the SHA-256 of 32 or 24 random bytes: they cannot be guessed, so a slow hash would
 * add nothing. Passwords get a slow one (`passwords.ts`). Every statement that adds or removes a credential also raises
 * `credentials.version`, which invalidates what other processes have cached.
 */
import { createHash, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { counted, EVERY_HOUR_MS, type Schedule } from '../../commands/schedules/schedule.ts';
import type { Credentials, KeyRecord, SessionRecord } from '../../shared/ports/credentials.ts';
import { seconds } from '../../shared/time.ts';
import type { Database } from '../database/database.ts';
import type { Logger } from '../logging.ts';
import { deleteOld } from '../stores/pieces.ts';
import { createPasswords } from './passwords.ts';

/** How long key uses are collected before they are written, milliseconds. */
const USES_AFTER_MS = 1_000;
/** Most keys with unwritten uses; beyond that, uses are ignored until the next write. */
const MAX_USES = 50_000;

const RAISE = 'UPDATE credentials.version SET version = version + 1';

export interface CredentialStore extends Credentials {
  /** How often this process has added or removed a credential. */
  changes(): number;
  /** Records that an event at this position changed what a credential stands for. */
  changedAt(position: number): Promise<void>;
  /** Writes the uses collected so far. */
  close(): Promise<void>;
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

export function createCredentials(database: Pick<Database, 'pool'>, log: Logger): CredentialStore {
  const { pool } = database;
  const passwords = createPasswords();
  let changes = 0;

  /** Runs a data-modifying statement and raises the version with it. */
  async function change(statement: string, values: readonly unknown[]): Promise<void> {
    try {
      await pool.query(`WITH changed AS (${statement}) ${RAISE}`, [...values]);
    } finally {
      // Also after a failure: the statement may have taken effect, and an unnecessary cache invalidation costs little.
      changes++;
    }
  }

  const binary = (hashes: readonly string[]): Buffer[] => hashes.map((hash) => Buffer.from(hash, 'hex'));

  async function findSessions(tokenHashes: readonly string[]): Promise<ReadonlyMap<string, SessionRecord>> {
    const { rows } = await pool.query(
      'SELECT token_hash, user_id, credential, expires_at FROM credentials.sessions WHERE token_hash = ANY($1::bytea[])',
      [binary(tokenHashes)],
    );
    return new Map(
      (rows as { token_hash: Buffer; user_id: number; credential: string; expires_at: number }[]).map((row) => [
        row.token_hash.toString('hex'),
        { userId: row.user_id, credential: row.credential, expiresAt: row.expires_at },
      ]),
    );
  }

  async function findKeys(hashes: readonly string[]): Promise<ReadonlyMap<string, KeyRecord>> {
    const { rows } = await pool.query(
      'SELECT key_hash, kind, key_id FROM credentials.keys WHERE key_hash = ANY($1::bytea[])',
      [binary(hashes)],
    );
    return new Map(
      (rows as { key_hash: Buffer; kind: KeyRecord['kind']; key_id: number }[]).map((row) => [
        row.key_hash.toString('hex'),
        { kind: row.kind, keyId: row.key_id },
      ]),
    );
  }

  const uses = new Map<string, { record: KeyRecord; at: number }>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  async function writeUses(): Promise<void> {
    timer = undefined;
    const batch = [...uses.values()];
    uses.clear();
    if (batch.length === 0) return;
    await pool.query(
      `UPDATE credentials.keys k SET last_used_at = u.at
       FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS u(kind, key_id, at)
       WHERE k.kind = u.kind AND k.key_id = u.key_id AND coalesce(k.last_used_at, 0) < u.at`,
      [batch.map((use) => use.record.kind), batch.map((use) => use.record.keyId), batch.map((use) => use.at)],
    );
  }

  return {
    changes: () => changes,
    async changedAt(position) {
      await pool.query(`${RAISE}, position = greatest(position, $1)`, [position]);
      changes++;
    },

    async addPassword(userId, password) {
      const id = randomUUID();
      const hash = await passwords.hash(password);
      await change('INSERT INTO credentials.passwords (id, user_id, hash, created_at) VALUES ($1, $2, $3, $4)', [
        id,
        userId,
        hash,
        seconds(Date.now()),
      ]);
      return id;
    },
    async verifyPassword(id, password) {
      const { rows } = await pool.query('SELECT hash FROM credentials.passwords WHERE id = $1', [id]);
      const hash = (rows[0] as { hash: string } | undefined)?.hash;
      const right = await passwords.verify(hash, password);
      if (right && hash !== undefined && passwords.outdated(hash)) {
        // The id stays the same, so no cache is invalidated. A concurrent sign-in may have rehashed it already.
        const fresh = await passwords.hash(password);
        await pool.query('UPDATE credentials.passwords SET hash = $2 WHERE id = $1 AND hash = $3', [id, fresh, hash]);
      }
      return right;
    },
    async removePasswords(userId, except) {
      await change('DELETE FROM credentials.passwords WHERE user_id = $1 AND id IS DISTINCT FROM $2::uuid', [
        userId,
        except ?? null,
      ]);
    },

    async addSession(token, session) {
      const { userId, credential, ip, userAgent, createdAt, expiresAt } = session;
      await change(
        `INSERT INTO credentials.sessions (token_hash, user_id, credential, ip, user_agent, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
       ), expired AS (
         DELETE FROM credentials.sessions WHERE expires_at <= $6`,
        [sha256(token), userId, credential, ip, userAgent, createdAt, expiresAt],
      );
    },
    findSession: async (tokenHash) => (await findSessions([tokenHash])).get(tokenHash),
    findSessions,
    removeSession: (tokenHash) =>
      change('DELETE FROM credentials.sessions WHERE token_hash = $1', [Buffer.from(tokenHash, 'hex')]),
    removeSessions: (userId) => change('DELETE FROM credentials.sessions WHERE user_id = $1', [userId]),

    async addKey(key, { kind, keyId }) {
      // An existing key keeps its record, so two processes that store the same key agree on the first id.
      await change(
        `INSERT INTO credentials.keys (key_hash, kind, key_id, created_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (key_hash) DO NOTHING`,
        [sha256(key), kind, keyId, seconds(Date.now())],
      );
    },
    async findKey(key) {
      const hash = sha256(key).toString('hex');
      return (await findKeys([hash])).get(hash);
    },
    findKeys,
    removeKey: ({ kind, keyId }) =>
      change('DELETE FROM credentials.keys WHERE kind = $1 AND key_id = $2', [kind, keyId]),
    keyUsed(record) {
      const name = `${record.kind}:${record.keyId}`;
      const use = uses.get(name);
      if (use) use.at = seconds(Date.now());
      else if (uses.size < MAX_USES) uses.set(name, { record, at: seconds(Date.now()) });
      timer ??= setTimeout(() => {
        writing = writing
          .then(writeUses)
          .catch((error) => log.warn({ err: error }, 'could not store the last use of keys'));
      }, USES_AFTER_MS).unref();
    },
    async keysLastUsed(kind, ids) {
      const { rows } = await pool.query(
        'SELECT key_id, last_used_at FROM credentials.keys WHERE kind = $1 AND key_id = ANY($2::bigint[]) AND last_used_at IS NOT NULL',
        [kind, [...ids]],
      );
      const last = new Map((rows as { key_id: number; last_used_at: number }[]).map((r) => [r.key_id, r.last_used_at]));
      for (const id of ids) {
        const waiting = uses.get(`${kind}:${id}`);
        if (waiting) last.set(id, Math.max(waiting.at, last.get(id) ?? 0));
      }
      return last;
    },
    async close() {
      clearTimeout(timer);
      await writing;
      await writeUses().catch((error) => log.warn({ err: error }, 'could not store the last use of keys'));
    },
  };
}

/** Ended sessions are no longer accepted anyway, so no cache needs invalidation. @param now Unix ms */
export const sessionsSchedule = (pool: pg.Pool, now: () => number): Schedule => ({
  id: 'purge_sessions',
  kind: 'purge-sessions',
  name: 'Delete ended sessions',
  everyMs: EVERY_HOUR_MS,
  async run(_asked, signal) {
    const ended = { table: 'credentials.sessions', by: 'expires_at', before: seconds(now()) + 1 };
    return `${counted(await deleteOld(pool, ended, { signal }), 'session was', 'sessions were')} deleted.`;
  },
});
