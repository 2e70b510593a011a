/** The log position that a read must show, and whether data read earlier is still current. */
import type { Position } from './event-log.ts';

/**
 * The log position of a read. Without any of the fields, a read does not wait.
 *
 * The head is the position of the last event in the log, whether or not its writer has received its response yet: the
 * refusal of another caller may depend on it.
 */
export interface ReadAt {
  /**
   * At the head of the log as of this moment (`performance.now()`), such as the arrival of a request, or later: a
   * response of the store to a later query is acceptable.
   */
  readonly since?: number | undefined;
  /** At this position or a later one. It is known to be in the log. */
  readonly position?: Position | undefined;
}

/** At the head of the log as of this call. */
export const atHead = (): ReadAt => ({ since: performance.now() });

/** A record and where it is, for work on all workspaces. */
export interface RecordPlace {
  readonly tenant: number;
  readonly workspace: number;
  readonly id: number;
}

/** The methods of read models for commands with rules that span many streams. */
export interface ReadModels {
  /**
   * Resolves when every read model that listens to one of these event types shows `at`. For a rule that is checked
   * under a lock, use the head after the lock was taken: `reach(types, atHead())`.
   *
   * @throws AppError 503 `READ_MODEL_BEHIND` when that takes longer than the configured time-out
   */
  reach(eventTypes: readonly string[], at: ReadAt): Promise<void>;
  /** Whether the log has this position. */
  has(position: Position): Promise<boolean>;
}

/** Whether something read earlier is still current, without reading it again. @throws AppError 503 `READ_MODEL_BEHIND` */
export interface Freshness {
  /**
   * The state of these read models (names of projections), once they show `at`. Get it before reading: data is current
   * as long as the value stays the same. `workspace` narrows it down where the store supports that.
   */
  stamp(projections: readonly string[], workspace: number | 'all', at: ReadAt): Promise<Stamp>;
  /**
   * Whether the rows from which something was built for an agent are as they were at an earlier stamp, once they show
   * `at`. Get the stamp before reading. What was built is as new as the later stamp, if it is current.
   *
   * @param earlier default: nothing was built
   */
  stampFor(agent: ConcernedAgent, sources: Sources, at: ReadAt, earlier?: Stamp): Promise<StampFor>;
  /**
   * A value that changes whenever a credential (session, key, password) is added or removed, or rows of these read
   * models change. They show every change acknowledged before `since` (`performance.now()`) that affects what a
   * credential stands for.
   */
  credentials(projections: readonly string[], since: number): Promise<string>;
}

/** An agent as rows name it: a caller that speaks for it may know it by another name. */
export interface ConcernedAgent {
  readonly workspace: number;
  readonly names: readonly string[];
  readonly ids: readonly number[];
}

export interface Sources {
  /** Tables that declare which agents a row concerns, each with the name of its projection. */
  readonly tables: readonly { readonly projection: string; readonly table: string }[];
  /** Names of the projections whose changes count in a process that does not make all of them. */
  readonly models: readonly string[];
}

export interface StampFor extends Stamp {
  readonly isCurrent: boolean;
}

export interface Stamp {
  /** Changes whenever rows of the read models change. */
  readonly value: string;
  /** The position that the rows show; they may show later ones. */
  readonly position: Position;
}
