/**
 * Saved states of long streams, so that a command need not read a stream from its beginning. Never the source of truth.
 */
export interface Snapshot {
  /** Revision, position and time (Unix ms) of the last event that the state includes. */
  readonly revision: number;
  readonly position: number;
  readonly at: number;
  /** JSON. */
  readonly state: unknown;
}

export interface Snapshots {
  /** Finds only a snapshot that was saved under the same kind. */
  find(stream: string, kind: string): Promise<Snapshot | undefined>;
  /** Saves in the background; if that fails, the next read only takes longer. */
  save(stream: string, kind: string, snapshot: Snapshot): void;
}
