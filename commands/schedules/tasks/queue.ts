/**
 * Returns a task to the queue when its agent has been silent for too long.
 *
 * The read model names the candidates; the decision is made on the task's own stream, so a task that was just changed
 * is left alone.
 */
import type { StaleTask, StaleTaskReads } from '../../../queries/tasks/queue.ts';
import { newId } from '../../../shared/ids.ts';
import { MINUTE, seconds } from '../../../shared/time.ts';
import type { Commands } from '../../handler.ts';
import { scheduledContext, unlessBusy } from '../../policies/policy.ts';
import { decideRequeue } from '../../tasks/queue.ts';
import { taskDecider, taskStream } from '../../tasks/tasks.ts';
import { counted, EVERY_MINUTE_MS, isOn, type Schedule, type Setting } from '../schedule.ts';

/** Candidates per page. */
const PAGE = 200;

export interface StaleTasks {
  readonly commands: Commands;
  readonly reads: StaleTaskReads;
  /** How long a task may stay unchanged while its agent is away. */
  readonly staleMinutes: number;
  /** Unix ms. */
  readonly now: () => number;
}

/** Checks all workspaces once. @returns the ids of the tasks that were returned to the queue */
export async function requeueStaleTasks(parts: StaleTasks): Promise<readonly number[]> {
  const { commands, reads } = parts;
  const since = seconds(parts.now()) - parts.staleMinutes * MINUTE;
  const run = newId();
  const requeued: number[] = [];
  let last: StaleTask | undefined;
  for (;;) {
    const page = await reads.stale(since, last, PAGE);
    for (const task of page) {
      const { tenant, workspace, id } = task;
      const commentId = await commands.counters.take('comment');
      const context = scheduledContext(run, tenant, workspace);
      const events = await unlessBusy(
        commands.execute(taskDecider, taskStream(workspace, id), context, (state) =>
          decideRequeue(state, { ...task, since, comment_id: commentId }),
        ),
      );
      if (events.length > 0) requeued.push(id);
    }
    last = page.at(-1);
    if (!last || page.length < PAGE) return requeued;
  }
}

export function staleTasksSchedule(parts: StaleTasks & { readonly setting: Setting }): Schedule {
  const { staleMinutes, setting } = parts;
  const on = isOn(setting, 'general.stale_task_requeue');
  return {
    id: 'stale_task_requeue',
    kind: 'stale-tasks',
    name: 'Return stuck tasks to the queue',
    everyMs: EVERY_MINUTE_MS,
    enabled: async () => staleMinutes > 0 && (await on()),
    async run() {
      if (staleMinutes === 0) return 'Tasks are never taken back: MC_STALE_TASK_MINUTES is 0.';
      const requeued = await requeueStaleTasks(parts);
      return `${counted(requeued.length, 'task was', 'tasks were')} taken back.`;
    },
  };
}
