/**
 * Where requests with an `Idempotency-Key` are remembered, for 24 h. The store sees hashes and boxes only: what a
 * request asked for is kept as an HMAC, what it answered encrypted, both under keys made of the deployment's secret
 * and the caller's own key, which is never stored.
 */
export interface IdempotencyRecord {
  readonly requestHash: Buffer;
  readonly state: 'running' | 'done';
  /** Encrypted: intents while running, the answer when done. */
  readonly box: Buffer | null;
}

export interface IdempotencyStore {
  /** 32 bytes that all processes of the deployment share and nobody else knows. */
  secret(): Promise<Buffer>;
  /**
   * Takes the key for this request, or tells what is there. `taken` also when an earlier run was left behind by a
   * process that died or gave up; its hash and box come along. A new record has no box and the hash that is given.
   */
  begin(
    scope: string,
    keyHash: Buffer,
    requestHash: Buffer,
  ): Promise<{ taken: boolean; record: IdempotencyRecord | undefined }>;
  /** Replaces the box of a running request and keeps it taken. @throws AppError 409 when another run has taken over */
  save(scope: string, keyHash: Buffer, box: Buffer): Promise<void>;
  /**
   * Stores the answer. A run that took the key ends with this, `abandon` or `forget`.
   *
   * @throws AppError 409 when another run has taken over: its answer is the one that stands
   */
  finish(scope: string, keyHash: Buffer, box: Buffer): Promise<void>;
  /** Lets go of a running request that had no outcome; the next one with this key goes on with its box. */
  abandon(scope: string, keyHash: Buffer): Promise<void>;
  /** Forgets a request that was refused before anything happened. */
  forget(scope: string, keyHash: Buffer): Promise<void>;
}
