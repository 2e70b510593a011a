/**
 * What agents have to do with tasks. This is the one place where agents look at tasks; there is no column for tasks
 * yet, so nobody has any.
 */
import type { TaskStats } from '../../shared/contract/agents/agents.ts';
import type { Reads } from '../reads.ts';

export const NO_TASKS: TaskStats = { total: 0, assigned: 0, in_progress: 0, quality_review: 0, done: 0, completed: 0 };

/** Read models that change whenever a task does, or an activity about one. */
export const TASK_MODELS: readonly string[] = [];

/** A task as the work item `assigned_tasks` shows it; the full record is in `record`. */
export interface AssignedTask {
  readonly item: Readonly<Record<string, unknown>>;
  readonly record: Readonly<Record<string, unknown>>;
}

/** A task that an adapter offers to an agent of its framework. */
export interface Assignment {
  readonly taskId: string;
  readonly description: string;
  readonly priority: number;
}

/** Tasks by status of the agents with these names. Who is missing from the answer has none. */
export async function taskStatsOf(
  _reads: Reads,
  _workspace: number,
  _names: readonly string[],
): Promise<ReadonlyMap<string, TaskStats>> {
  return new Map();
}

/** Tasks assigned to an agent that are assigned or in progress: at most 10, most urgent and oldest first. */
export async function tasksOf(_reads: Reads, _workspace: number, _name: string): Promise<readonly AssignedTask[]> {
  return [];
}

/** Tasks that wait for an agent, or for anybody: at most 5, most urgent first. */
export async function assignmentsFor(
  _reads: Reads,
  _workspace: number,
  _agentId: string,
): Promise<readonly Assignment[]> {
  return [];
}

/** The id when there is such a task, else null. */
export async function knownTask(_reads: Reads, _workspace: number, _taskId: number | null): Promise<number | null> {
  return null;
}
