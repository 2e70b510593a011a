/**
 * The credential store: hashes of passwords, sessions and keys. The log never contains them; it refers to a credential
 * by a random id. A stored hash is valid only while the log refers to it.
 */

export interface SessionRecord {
  readonly userId: number;
  /** The user's `session_mark` at sign-in (`<credential id or google>.<event number>`): a session ends when the current one differs. */
  readonly credential: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

export interface KeyRecord {
  readonly kind: 'global' | 'agent';
  readonly keyId: number;
}

export interface Credentials {
  /** Stores an argon2id hash of `password`. @returns its new id (UUID) */
  addPassword(userId: number, password: string): Promise<string>;
  /**
   * Verifies a password; with an unknown id (or null) it takes the same time and returns false. Never blocks the event
   * loop.
   */
  verifyPassword(id: string | null, password: string): Promise<boolean>;
  removePasswords(userId: number, except?: string): Promise<void>;

  /** Stores a session by the SHA-256 of its token; removes expired ones. Times in Unix seconds. */
  addSession(
    token: string,
    session: SessionRecord & { ip: string | null; userAgent: string | null; createdAt: number },
  ): Promise<void>;
  findSession(tokenHash: string): Promise<SessionRecord | undefined>;
  /** The sessions found, by their hashes. */
  findSessions(tokenHashes: readonly string[]): Promise<ReadonlyMap<string, SessionRecord>>;
  removeSession(tokenHash: string): Promise<void>;
  removeSessions(userId: number): Promise<void>;

  /** Stores the SHA-256 of a key. */
  addKey(key: string, record: KeyRecord): Promise<void>;
  findKey(key: string): Promise<KeyRecord | undefined>;
  /** The keys found, by their SHA-256, hex. */
  findKeys(hashes: readonly string[]): Promise<ReadonlyMap<string, KeyRecord>>;
  removeKey(record: KeyRecord): Promise<void>;
  /** Records a use; written in the background, at most about once a second per key. */
  keyUsed(record: KeyRecord): void;
  /** Unix seconds of the last use, by key id. */
  keysLastUsed(kind: 'agent' | 'global', ids: readonly number[]): Promise<ReadonlyMap<number, number>>;
}
