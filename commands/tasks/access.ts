/** Which tasks a caller may change. Decided with the state that a write is appended to, so that no other write comes between. */
import { conflict, forbidden } from '../../shared/errors.ts';
import { type Identity, isAssignedTo, taskViewOf, type Viewer } from '../../shared/identity.ts';
import { assigneeIn } from './assignments.ts';
import type { TaskState } from './tasks.ts';

/** Fields of a caller that decide what it may change. */
export type TaskCaller = Viewer & Pick<Identity, 'kind'>;

/**
 * Refuses a write to a task in progress by a caller that names another agent than its assignee in `x-agent-name`: that
 * agent's work has been taken over, or was never its own.
 *
 * @throws AppError 409
 */
export function requireHolder({ kind, agentName }: TaskCaller, { task }: TaskState): void {
  const { status, assigned_to: holder } = task;
  if (kind === 'agent-key' || agentName === null || status !== 'in_progress') return;
  if (holder === null || holder === agentName) return;
  throw conflict(
    `The agent ${holder} has this task in progress, and x-agent-name names ${agentName}: leave the task to ${holder}, or repeat the call without x-agent-name.`,
    { code: 'HELD_BY_ANOTHER_AGENT' },
  );
}

/** Refuses a caller that speaks for an agent other than the assignee. @throws AppError 403, 409 */
export function requireAccess(caller: TaskCaller, state: TaskState): void {
  const { agent } = taskViewOf(caller);
  if (agent !== null && !isAssignedTo(assigneeIn(state.task), agent))
    throw forbidden(`You speak for the agent ${agent.name}, and this task is not assigned to it.`);
  requireHolder(caller, state);
}

/** Refuses an agent's review of its own work, and of work that another agent has in progress. @throws AppError 403, 409 */
export function requireReviewer(caller: TaskCaller, state: TaskState): void {
  const { kind, agentName, agentId } = caller;
  const { task } = state;
  requireHolder(caller, state);
  if (kind !== 'agent-key' || agentName === null) return;
  if (isAssignedTo(assigneeIn(task), { name: agentName, id: agentId }))
    throw forbidden(`This task is assigned to ${agentName}, and an agent cannot review its own work.`);
}
