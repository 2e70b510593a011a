/**
 * The queue: agents poll for work, and a poll claims one task.
 *
 * A claim is one append to the task's own stream, so only one poll gets a task, no matter how many ask at once. The
 * others try the next candidate.
 *
 * The capacity of an agent concerns the streams of several tasks. Within a process, polls of one agent take turns. Across
 * processes, a poll checks after its claim: once the read models show the claim, they also show every earlier one, and
 * the order of the log decides which claims are too many. Those are released. No clock and no lock is involved. If a
 * process is killed between claim and release, its agent has one task too many; the next poll returns that task.
 */
import type { PollReason } from '../../shared/contract/tasks/queue.ts';
import { AppError } from '../../shared/errors.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { taskClaimed, taskReleased, taskRequeued } from '../../shared/events/tasks/queue.ts';
import { placeOf, type TaskPlace } from '../../shared/events/tasks/tasks.ts';
import type { QueuedTask, TaskQueueReads } from '../../shared/ports/queue.ts';
import { takingTurnsByKey } from '../../shared/waiting.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { commentFrom } from './comments.ts';
import { placedAt, recordOf, type TaskState, taskDecider, taskStream } from './tasks.ts';

export interface Polled {
  readonly task: QueuedTask | null;
  readonly reason: PollReason;
}

const WAITING: readonly string[] = ['assigned', 'inbox'];

/** No event when the task is not waiting for this agent: it is deleted, assigned to another, or in another status. */
export function decideClaim({ id, task }: TaskState, agent: string): EventDraft[] {
  const open = id !== 0 && WAITING.includes(task.status) && (task.assignedTo === null || task.assignedTo === agent);
  if (!open) return [];
  const after = placedAt(task, { status: 'in_progress', assignedTo: agent });
  return [taskClaimed.draft({ taskId: id, title: task.title, agent, before: placeOf(task), after })];
}

/** Puts the task back where it was before the claim; no event when somebody has changed it since. */
export function decideRelease({ id, task }: TaskState, agent: string, before: TaskPlace): EventDraft[] {
  if (id === 0 || task.status !== 'in_progress' || task.assignedTo !== agent) return [];
  const after = placedAt(task, { status: before.status, assignedTo: before.assignedTo });
  return [taskReleased.draft({ taskId: id, title: task.title, agent, before: placeOf(task), after })];
}

/** After so many attempts a task has failed. */
export const MAX_ATTEMPTS = 5;

/**
 * Takes a task back from an agent that is offline or unknown. It waits for the agent again; when there is no such agent,
 * for anybody. No event when somebody has changed the task since.
 *
 * @param stale.since Unix seconds: a task that was changed later is not stale
 */
export function decideRequeue(
  state: TaskState,
  {
    agent,
    known,
    since,
    commentId,
  }: { readonly agent: string; readonly known: boolean; readonly since: number; readonly commentId: number },
): EventDraft[] {
  const { id, task, updatedAt } = state;
  if (id === 0 || task.status !== 'in_progress' || task.assignedTo !== agent || updatedAt > since) return [];
  const dispatchAttempts = task.dispatchAttempts + 1;
  const failed = dispatchAttempts >= MAX_ATTEMPTS;
  const silence = known ? `The agent ${agent} went offline` : `There is no agent ${agent} any more`;
  const after = failed ? { status: 'failed' } : { status: 'assigned', ...(!known && { assignedTo: null }) };
  return [
    taskRequeued.draft({
      taskId: id,
      title: task.title,
      agent,
      before: placeOf(task),
      after: placedAt(task, after),
      dispatchAttempts,
      errorMessage: failed ? `${silence} while it worked on the task; that was attempt ${dispatchAttempts}.` : null,
      reason: failed ? 'stale_task_max_retries' : 'stale_task_requeue',
    }),
    ...commentFrom(state, {
      id: commentId,
      author: 'scheduler',
      content: failed
        ? `${silence} while it worked on the task. After ${dispatchAttempts} attempts the task has failed.`
        : `${silence} while it worked on the task, which waits in the queue again (attempt ${dispatchAttempts} of ${MAX_ATTEMPTS}).`,
    }),
  ];
}

/** Candidates that are read at a time. */
const PAGE = 16;
/** Pages of candidates that one poll tries at most; all of them went to others. */
const MAX_PAGES = 8;

/** Another poll got the task. */
class Lost extends Error {}

const isBusy = (error: unknown): boolean => error instanceof AppError && error.extras.code === 'BUSY';

export interface TaskQueue {
  /**
   * What an agent is to work on now. Claims a task if the agent has capacity left.
   *
   * @param poll.agent any name; whether there is such an agent is not checked
   * @param poll.maxCapacity how many tasks it wants to have in progress, 1 or more
   * @throws AppError 503 when a store cannot be reached; the task may have been claimed, the next poll knows
   */
  poll(context: CommandContext, poll: { readonly agent: string; readonly maxCapacity: number }): Promise<Polled>;
}

/** The queue as one process sees it. */
export function createTaskQueue({
  commands,
  reads,
}: {
  readonly commands: Commands;
  readonly reads: TaskQueueReads;
}): TaskQueue {
  const inTurn = takingTurnsByKey((error) => error instanceof AppError && error.status === 503);
  /** Tasks that polls of this process are claiming right now: other polls skip them. */
  const tried = new Set<number>();

  async function claim(context: CommandContext, agent: string, id: number) {
    const stream = taskStream(context.origin.workspace, id);
    let before: TaskState | undefined;
    tried.add(id);
    try {
      const { events, position } = await commands.execute(taskDecider, stream, context, (state) => {
        before = state;
        const drafts = decideClaim(state, agent);
        if (drafts.length === 0) throw new Lost();
        return drafts;
      });
      const from = before as TaskState | undefined;
      const [event] = events;
      if (!from || !event) return undefined;
      const state = taskDecider.evolve(from, { at: event.meta.at, ...event });
      return { state, before: placeOf(from.task), position };
    } catch (error) {
      if (error instanceof Lost || isBusy(error)) return undefined;
      throw error;
    } finally {
      tried.delete(id);
    }
  }

  async function poll(context: CommandContext, agent: string, maxCapacity: number): Promise<Polled> {
    const { workspace } = context.origin;
    const current = await reads.inProgress(workspace, agent, maxCapacity);
    if (current.length >= maxCapacity) return full(current, maxCapacity);
    const lost: number[] = [];
    for (let page = 0; page < MAX_PAGES; page++) {
      const candidates = await reads.waiting(workspace, agent, [...lost, ...tried], PAGE);
      if (candidates.length === 0) break;
      for (const id of candidates) {
        // Another poll may have started on it since the page was read.
        const claimed = tried.has(id) ? undefined : await claim(context, agent, id);
        if (!claimed) {
          lost.push(id);
          continue;
        }
        const { state, before, position } = claimed;
        if ((await reads.earlier(workspace, agent, id, position, maxCapacity)) < maxCapacity)
          return { task: queued(state, workspace), reason: 'assigned' };
        await commands.execute(taskDecider, taskStream(workspace, id), context, (now) =>
          decideRelease(now, agent, before),
        );
        return full(await reads.inProgress(workspace, agent, maxCapacity), maxCapacity);
      }
    }
    return idle(current);
  }

  return {
    poll: (context, { agent, maxCapacity }) =>
      inTurn(`${context.origin.workspace} ${agent}`, () => poll(context, agent, maxCapacity)),
  };
}

const queued = (state: TaskState, workspace: number): QueuedTask => {
  const { project_name, project_prefix, ticket_ref, ...task } = recordOf(state, workspace);
  return task;
};

/** An agent that takes one task at a time continues with the one it has. */
const full = (current: readonly QueuedTask[], maxCapacity: number): Polled =>
  maxCapacity === 1 ? idle(current) : { task: null, reason: 'at_capacity' };

/** Nothing to claim: the agent continues with what it has. */
const idle = ([newest]: readonly QueuedTask[]): Polled =>
  newest ? { task: newest, reason: 'continue_current' } : { task: null, reason: 'no_tasks_available' };
