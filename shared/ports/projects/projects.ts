/** Projects from the read models, for commands that do not know the stream yet. */
import type { ReadAt, RecordPlace } from '../read-models.ts';

/** A project that is neither deleted nor being deleted. */
export interface FoundProject {
  readonly id: number;
  readonly name: string;
  /** First part of the ticket references of its tasks: `API` in `API-042`. */
  readonly prefix: string;
  readonly slug: string;
  readonly status: 'active' | 'archived';
}

export interface ProjectDirectory {
  find(workspace: number, id: number): Promise<FoundProject | undefined>;
  /** The project of records without another project. Undefined in a workspace that has none yet. */
  general(workspace: number): Promise<FoundProject | undefined>;
  /**
   * The project for a task that requests `id`: that project if it is active, otherwise the general one, otherwise the
   * active one with the lowest id. Undefined in a workspace without an active project.
   *
   * @param at default: the head of the log at the time of the call
   */
  placeFor(workspace: number, id: number | undefined, at?: ReadAt): Promise<FoundProject | undefined>;
}

/** Tasks by project, for moving them out of a deleted one. */
export interface ProjectTasks {
  /** Ids of tasks of a project, at most `limit`, the oldest first. */
  idsIn(workspace: number, project: number, limit: number): Promise<readonly number[]>;
  /** Projects that are being deleted, and deleted ones in which a task was placed at the last moment; some of them. */
  inDeletion(): Promise<readonly RecordPlace[]>;
}

/** The project's fields in a task; the project may have been deleted. */
export type TaskProject = Pick<FoundProject, 'name' | 'prefix'>;

/** Names and prefixes of projects. Only a project's own events contain them, so they are looked up for display. */
export interface TaskProjects {
  /**
   * Waits until the read model shows `at`. The function then looks projects up without waiting, so a command can call it
   * after its append. Undefined: there has never been such a project.
   *
   * @throws AppError 503 `READ_MODEL_BEHIND`
   */
  at(workspace: number, at: ReadAt): Promise<(id: number) => Promise<TaskProject | undefined>>;
}
