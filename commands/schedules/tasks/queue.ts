/**
 * Whenever an agent has fallen silent over a task, the task returns to the queue.
 *
 * The read model names the candidates; the decision is made on the task's own stream, so that one that was just
 * changed stays as it is.
 */
import { randomUUID } from 'node:crypto';
import type { StaleTask, StaleTaskReads } from '../../../shared/ports/tasks/queue.ts';
import { MINUTE, seconds } from '../../../shared/time.ts';
import type { Commands } from '../../handler.ts';
import { scheduledContext, unlessBusy } from '../../policies/policy.ts';
import { decideRequeue } from '../../tasks/queue.ts';
import { taskDecider, taskStream } from '../../tasks/tasks.ts';

/** Candidates that are read at a time. */
const PAGE = 200;

/**
 * Looks at all workspaces once. Gives the ids of the tasks that were taken back.
 *
 * @param parts.staleMinutes how long a task may stand still while its agent is away
 * @param parts.now Unix ms
 */
export async function requeueStaleTasks(parts: {
  readonly commands: Commands;
  readonly reads: StaleTaskReads;
  readonly staleMinutes: number;
  readonly now: () => number;
}): Promise<readonly number[]> {
  const { commands, reads } = parts;
  const since = seconds(parts.now()) - parts.staleMinutes * MINUTE;
  const run = randomUUID();
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
          decideRequeue(state, { ...task, since, commentId }),
        ),
      );
      if (events.length > 0) requeued.push(id);
    }
    last = page.at(-1);
    if (!last || page.length < PAGE) return requeued;
  }
}
