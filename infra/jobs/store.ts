/** The stores of jobs, and what BullMQ needs for each of them. */
import type { BackendFactory, IQueueBackend } from 'bullmq';

export interface JobStore {
  readonly kind: 'redis' | 'postgres';
  readonly factory: BackendFactory<IQueueBackend, unknown>;
  /** `connection` of a `Queue`: calls fail soon when the store is unreachable. */
  producer(): unknown;
  /** `connection` of a `Worker`: waits for the store without limit. */
  consumer(): unknown;
  /** Migrates the store; idempotent. Rejects when the store is unreachable. */
  prepare(): Promise<void>;
  /** Calls `listener` whenever the store has become available again. */
  onReturn(listener: () => void): void;
  /** Closes all connections at once, even if something waits on them. */
  close(): Promise<void>;
}

/** Name of the one queue; a Redis key starts with `PREFIX:QUEUE:`. */
export const QUEUE = 'jobs';
/** The braces make a Redis Cluster keep all keys of the queue in one slot, which BullMQ's scripts require. */
export const PREFIX = '{signalbox}';
