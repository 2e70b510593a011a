/** The port of backups: files that hold the whole log and what belongs to it. */
import type { Position } from '../event-log.ts';

export interface BackupFile {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Unix seconds. */
  readonly createdAt: number;
}

export interface WrittenBackup extends BackupFile {
  readonly path: string;
  readonly events: number;
  /** Over the events. */
  readonly sha256: string;
}

export interface BackupProgress {
  /** Unix seconds. */
  readonly startedAt: number;
  /** Position of the last event that is written. */
  readonly position: Position;
  /** Position of the last event that will be written; undefined until it is known. */
  readonly head: Position | undefined;
}

export interface Backups {
  /** Writes a backup and removes the oldest ones beyond the newest `keep`. One at a time: others wait. */
  create(keep: number): Promise<WrittenBackup>;
  /** Of the backup that this process is writing. */
  progress(): BackupProgress | undefined;
  /** Newest first. */
  list(): Promise<readonly BackupFile[]>;
  /** Whether there was one. @param name a name that `list` gave */
  remove(name: string): Promise<boolean>;
}
