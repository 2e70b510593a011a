/** The queue of tasks as the read models have it, for polls: who has what, and what is next. */
import type { TaskRecord } from '../contract/tasks/tasks.ts';

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

export interface TaskQueueReads {
  /** Tasks that an agent works on, last changed first; at most `limit`. */
  inProgress(workspace: number, agent: string, limit: number): Promise<readonly QueuedTask[]>;
  /**
   * Ids of tasks that wait for this agent or for anybody: most urgent first, then by due date (those without one last),
   * then by age. At most `limit`, none of `passedOver`.
   */
  waiting(workspace: number, agent: string, passedOver: readonly number[], limit: number): Promise<readonly number[]>;
  /**
   * How many tasks the agent worked on already when it claimed this one; at most `limit`.
   *
   * @param position of the claim in the log
   */
  earlier(workspace: number, agent: string, task: number, position: number, limit: number): Promise<number>;
}
