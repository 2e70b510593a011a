/** The queue of tasks from the read models, for polls: tasks in progress, and waiting tasks. */
import type { TaskRecord } from '../../contract/tasks/tasks.ts';
import type { RecordPlace } from '../read-models.ts';

/** A task in the response to a poll: the record without the fields from its project. */
export type QueuedTask = Omit<TaskRecord, 'project_name' | 'project_prefix' | 'ticket_ref'>;

/** A task in progress whose agent is offline or unknown. */
export interface StaleTask extends RecordPlace {
  readonly agent: string;
  /** False: the agent does not exist. */
  readonly known: boolean;
  /** Unix seconds. */
  readonly updatedAt: number;
}

export interface StaleTaskReads {
  /**
   * Tasks of all workspaces that have not changed after `since` (Unix seconds), after `after`, by last change; at most
   * `limit`. Tasks of users are left out.
   */
  stale(since: number, after: StaleTask | undefined, limit: number): Promise<readonly StaleTask[]>;
}

/** Limits of tasks of each kind that a poll reads. */
export interface QueueLook {
  readonly inProgress: number;
  readonly waiting: number;
  /** Ids of tasks to leave out of the waiting ones. */
  readonly passedOver: readonly number[];
}

/** What a poll finds. */
export interface QueueView {
  /** Tasks that the agent works on, last changed first. */
  readonly inProgress: readonly QueuedTask[];
  /**
   * Ids of tasks that wait for this agent or for any agent: most urgent first, then by due date (those without one last),
   * then by age.
   */
  readonly waiting: readonly number[];
}

export interface TaskQueueReads {
  /** Both as of one moment. */
  look(workspace: number, agent: string, look: QueueLook): Promise<QueueView>;
}
