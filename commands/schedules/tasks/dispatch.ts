/**
 * Hands assigned tasks over to the agent runner, as many as it has room for. The event on the task's own stream ensures
 * that only one process does it, and `commands/policies/tasks/dispatch.ts` asks the runner.
 */
import type { DispatchReads, NextTask } from '../../../queries/tasks/dispatch.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import { newId } from '../../../shared/ids.ts';
import type { Locks } from '../../../shared/ports/locks.ts';
import { HOUR, seconds } from '../../../shared/time.ts';
import type { Commands, Executed } from '../../handler.ts';
import { scheduledContext, unlessBusy } from '../../policies/policy.ts';
import { decideDispatch, decideDispatchFailed } from '../../tasks/dispatch.ts';
import { takingTurn } from '../../tasks/queue.ts';
import { type Asked, type TaskState, taskDecider, taskStream } from '../../tasks/tasks.ts';
import { counted, EVERY_MINUTE_MS, isOn, type Schedule, type Setting } from '../schedule.ts';

/** Tasks per workspace that the runner may work on at a time. */
export const AT_ONCE = 3;
/** Candidates per workspace that one turn reads. */
const CANDIDATES = 20;
/** After this time the job of a task counts as lost, because even a slow runner must have ended; seconds. */
const FORGOTTEN = 2 * HOUR;
/** Lost jobs that one turn handles. */
const FORGOTTEN_AT_ONCE = 100;

export interface Dispatching {
  readonly commands: Commands;
  readonly reads: DispatchReads;
  readonly locks: Locks;
  /** Unix ms */
  readonly now: () => number;
}

/**
 * Checks all workspaces once.
 *
 * @returns how many tasks are handed over now
 * @throws AppError 409 `BUSY` while another process does the same
 */
export function dispatchTasks(parts: Dispatching): Promise<number> {
  const { commands, reads, locks } = parts;
  // The lock is needed because two concurrent runs would each not count the requests of the other.
  return locks.holding('tasks for the agent runner', async () => {
    await failForgotten(parts, 'dispatch', (state, run, reason) => decideDispatchFailed(state, run, reason));
    // In the agent's turn, so that a poll that claims a task for the same agent counts this one.
    return askAbout(commands, await reads.assigned(CANDIDATES), decideDispatch, (task, ask) =>
      takingTurn(locks, task, ask),
    );
  });
}

/** Calls `ask` when the runner may be asked about the task; `lost` is aborted when that is no longer allowed. */
type InTurn<Task> = (task: Task, ask: (lost?: AbortSignal) => Promise<Executed>) => Promise<Executed>;

/** Requests work on as many tasks of each workspace as the runner has room for. @returns how many */
export async function askAbout<Task extends NextTask>(
  commands: Commands,
  tasks: readonly Task[],
  decide: (state: TaskState, task: Task) => readonly EventDraft[],
  inTurn: InTurn<Task> = (_, ask) => ask(),
): Promise<number> {
  const turn = newId();
  const asked = new Map<number, number>();
  let sum = 0;
  for (const task of tasks) {
    const { tenant, workspace, id } = task;
    const before = asked.get(workspace) ?? task.unanswered;
    if (before >= AT_ONCE) continue;
    const stream = taskStream(workspace, id);
    const context = scheduledContext(turn, tenant, workspace);
    const ask = (lost?: AbortSignal) =>
      commands.execute(taskDecider, stream, context, (state) => decide(state, task), { unless: lost });
    const events = await unlessBusy(inTurn(task, ask));
    if (events.length === 0) continue;
    asked.set(workspace, before + 1);
    sum++;
  }
  return sum;
}

/** Fails tasks whose job is lost, for instance because its store was lost. */
export async function failForgotten(
  { commands, reads, now }: Omit<Dispatching, 'locks'>,
  what: Asked['what'],
  decide: (state: TaskState, run: number, reason: string) => readonly EventDraft[],
): Promise<void> {
  const since = seconds(now()) - FORGOTTEN;
  const turn = newId();
  for (const { tenant, workspace, id } of await reads.forgotten(what, since, FORGOTTEN_AT_ONCE)) {
    const context = scheduledContext(turn, tenant, workspace);
    await unlessBusy(
      commands.execute(taskDecider, taskStream(workspace, id), context, (state) =>
        state.updated_at > since ? [] : decide(state, state.asked?.run ?? 0, 'Nothing was heard of it in two hours.'),
      ),
    );
  }
}

/** The result of a schedule that needs the runner. */
export const NO_RUNNER = 'No agent runner is configured: RUNNER_URL is not set. Tasks stay as they are.';

/** @param parts.hasRunner whether an agent runner is configured */
export const taskDispatchSchedule = (
  parts: Dispatching & { readonly setting: Setting; readonly hasRunner: boolean },
): Schedule => ({
  id: 'task_dispatch',
  kind: 'task-dispatch',
  name: 'Dispatch tasks to agents',
  everyMs: EVERY_MINUTE_MS,
  enabled: isOn(parts.setting, 'general.task_dispatch'),
  async run() {
    if (!parts.hasRunner) return NO_RUNNER;
    return `${counted(await dispatchTasks(parts), 'task was', 'tasks were')} dispatched.`;
  },
});
