/** Where jobs are kept: what BullMQ has to be given for each of the places. */
import type { BackendFactory, IQueueBackend } from 'bullmq';

export interface JobStore {
  readonly kind: 'redis' | 'postgres';
  readonly factory: BackendFactory<IQueueBackend, unknown>;
  /** `connection` of a `Queue`: a call that cannot reach the store fails soon. */
  producer(): unknown;
  /** `connection` of a `Worker`: waits for the store as long as it takes. */
  consumer(): unknown;
  /** Brings the store up to date; idempotent. Rejects when it cannot be reached. */
  prepare(): Promise<void>;
  /** Calls `listener` whenever the store was away and is back. */
  onReturn(listener: () => void): void;
  /** Ends all connections at once, whatever waits on them. */
  close(): Promise<void>;
}

/** Name of the one queue; a Redis key starts with `PREFIX:QUEUE:`. */
export const QUEUE = 'jobs';
/** In braces, so that a Redis Cluster keeps all keys of the queue in one slot, as BullMQ's scripts need it. */
export const PREFIX = '{signalbox}';
