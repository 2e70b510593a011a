/**
 * Hands assigned tasks over to the agent runner, as many as it has room for. The event on the task's own stream decides
 * between several processes, and `commands/policies/tasks/dispatch.ts` asks the runner.
 */
import { randomUUID } from 'node:crypto';
import type { EventDraft } from '../../../shared/events/define.ts';
import type { Locks } from '../../../shared/ports/locks.ts';
import type { DispatchReads, NextTask, WaitingTask } from '../../../shared/ports/tasks/dispatch.ts';
import { HOUR, seconds } from '../../../shared/time.ts';
import type { Commands, Executed } from '../../handler.ts';
import { scheduledContext, unlessBusy } from '../../policies/policy.ts';
import { decideDispatch, decideDispatchFailed } from '../../tasks/dispatch.ts';
import { takingTurn } from '../../tasks/queue.ts';
import { type Asked, type TaskState, taskDecider, taskStream } from '../../tasks/tasks.ts';
import { counted, EVERY_MINUTE_MS, isOn, type Schedule, type Setting } from '../schedule.ts';

/** Tasks of a workspace that the runner is asked for at a time. */
export const AT_ONCE = 3;
/** Candidates of a workspace that are looked at in one turn. */
const CANDIDATES = 20;
/** After this long the job of a task is gone: it must have ended long ago, however slow the runner is; seconds. */
const FORGOTTEN = 2 * HOUR;
/** Forgotten tasks in one turn. */
const FORGOTTEN_AT_ONCE = 100;

export interface Dispatching {
  readonly commands: Commands;
  readonly reads: DispatchReads;
  readonly locks: Locks;
  /** Unix ms */
  readonly now: () => number;
}

/**
 * Looks at all workspaces once. Gives how many tasks are handed over now.
 *
 * @throws AppError 409 `BUSY` while another process does
 */
export function dispatchTasks(parts: Dispatching): Promise<number> {
  const { commands, reads, locks } = parts;
  // Of two runs at once, each would count what the runner has been asked for without what the other one asks for.
  return locks.holding('tasks for the agent runner', async () => {
    await failForgotten(parts, 'dispatch', (state, run, reason) => decideDispatchFailed(state, run, reason));
    // A poll that claims a task for the same agent counts this one.
    return askAbout(commands, await reads.assigned(CANDIDATES), decideDispatch, (task, ask) =>
      takingTurn(locks, task, ask),
    );
  });
}

/** Calls `ask` when the runner may be asked about the task; `lost` is aborted when it may no longer be. */
type InTurn<Task> = (task: Task, ask: (lost?: AbortSignal) => Promise<Executed>) => Promise<Executed>;

/** Lets the runner be asked about as many tasks of each workspace as it has room for. Gives how many these are. */
export async function askAbout<Task extends NextTask>(
  commands: Commands,
  tasks: readonly Task[],
  decide: (state: TaskState, task: Task) => readonly EventDraft[],
  inTurn: InTurn<Task> = (_, ask) => ask(),
): Promise<number> {
  const turn = randomUUID();
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

/** Gives up on tasks whose job is gone, for instance because its store was lost. */
export async function failForgotten(
  { commands, reads, now }: Omit<Dispatching, 'locks'>,
  what: Asked['what'],
  decide: (state: TaskState, run: number, reason: string) => readonly EventDraft[],
): Promise<void> {
  const since = seconds(now()) - FORGOTTEN;
  const turn = randomUUID();
  const forgotten: readonly WaitingTask[] = await reads.forgotten(what, since, FORGOTTEN_AT_ONCE);
  for (const { tenant, workspace, id } of forgotten) {
    const context = scheduledContext(turn, tenant, workspace);
    await unlessBusy(
      commands.execute(taskDecider, taskStream(workspace, id), context, (state) =>
        state.updated_at > since ? [] : decide(state, state.asked?.run ?? 0, 'Nothing was heard of it in two hours.'),
      ),
    );
  }
}

/** The answer of a schedule that needs the runner. */
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
