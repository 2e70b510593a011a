/** Kept states of long streams, so that a command does not have to read a stream from its beginning. Never the truth. */
export interface Snapshot {
  /** Revision, position and time (Unix ms) of the last event that the state knows of. */
  readonly revision: number;
  readonly position: number;
  readonly at: number;
  /** JSON. */
  readonly state: unknown;
}

export interface Snapshots {
  /** Only one that was saved under the same kind. */
  find(stream: string, kind: string): Promise<Snapshot | undefined>;
  /** In the background; one that is not saved costs a longer read. */
  save(stream: string, kind: string, snapshot: Snapshot): void;
}
