/** The queue of tasks as the read models have it, for polls: who has what, and what is next. */
import type { TaskRecord } from '../../contract/tasks/tasks.ts';

/** A task as a poll answers it: the record without what it has from its project. */
export type QueuedTask = Omit<TaskRecord, 'project_name' | 'project_prefix' | 'ticket_ref'>;

/** A task in progress whose agent is offline or unknown. */
export interface StaleTask {
  readonly tenant: number;
  readonly workspace: number;
  readonly id: number;
  readonly agent: string;
  /** False: there is no such agent. */
  readonly known: boolean;
  /** Unix seconds. */
  readonly updatedAt: number;
}

export interface StaleTaskReads {
  /**
   * Tasks of all workspaces that were not changed after `since` (Unix seconds), behind `after`, by last change; at most
   * `limit`. Tasks of users are none of them.
   */
  stale(since: number, after: StaleTask | undefined, limit: number): Promise<readonly StaleTask[]>;
}

/** What a poll reads, at most so many tasks of each kind. */
export interface QueueLook {
  readonly inProgress: number;
  readonly waiting: number;
  /** Ids of tasks that are not to be among those that wait. */
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
