/**
 * Remembers requests with an `Idempotency-Key` for 24 h. The store sees only hashes and ciphertext: a request is stored
 * as an HMAC, its response encrypted, both under keys derived from the deployment's secret and the caller's own key,
 * which is never stored.
 */
export interface IdempotencyRecord {
  readonly requestHash: Buffer;
  readonly state: 'running' | 'done';
  /** Ciphertext of the intents while running, of the response when done. */
  readonly sealed: Buffer | null;
}

export interface IdempotencyStore {
  /** 32 bytes, shared by all processes of the deployment and secret outside of it. */
  secret(): Promise<Buffer>;
  /**
   * Takes the key for this request, or returns the record that holds it. `taken` is also true when the earlier run was
   * abandoned by a process that died or gave up; its record comes along. A new record has `requestHash` and no
   * ciphertext.
   */
  begin(
    scope: string,
    keyHash: Buffer,
    requestHash: Buffer,
  ): Promise<{ taken: boolean; record: IdempotencyRecord | undefined }>;
  /** Replaces the ciphertext of a running request and keeps it taken. @throws AppError 409 when another run has taken over */
  save(scope: string, keyHash: Buffer, sealed: Buffer): Promise<void>;
  /**
   * Stores the response. A run that took the key ends with this, `abandon` or `forget`.
   *
   * @throws AppError 409 when another run has taken over: then only that run's response counts
   */
  finish(scope: string, keyHash: Buffer, sealed: Buffer): Promise<void>;
  /** Releases a running request without an outcome; the next request with this key continues from its intents. */
  abandon(scope: string, keyHash: Buffer): Promise<void>;
  /** Deletes the record of a request that was refused before it changed anything. */
  forget(scope: string, keyHash: Buffer): Promise<void>;
}
