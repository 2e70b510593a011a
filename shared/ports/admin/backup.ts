/** The port of backups: files with the whole log and the data that belongs to it. */
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
  /** Public keys for which the file is encrypted. */
  readonly recipients: readonly string[];
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
  /** Writes a backup and removes older ones beyond the newest `keep`. One at a time: further calls wait. */
  create(keep: number): Promise<WrittenBackup>;
  /** Progress of the backup that this process is writing. */
  progress(): BackupProgress | undefined;
  /** Newest first. */
  list(): Promise<readonly BackupFile[]>;
  /** @returns whether the backup existed @param name a name from `list` */
  remove(name: string): Promise<boolean>;
}
