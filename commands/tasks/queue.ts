/**
 * The queue: agents poll for work, and a poll claims one task. Each task goes to one agent.
 *
 * A claim is one append to the task's own stream, so only one poll gets a task, however many poll at once. The others
 * try the next candidate.
 *
 * The limit of an agent's tasks in progress spans the streams of several tasks. So any automatic assignment first takes
 * the agent's turn, a lock shared by all processes. It then counts the agent's tasks in read models that show
 * everything that earlier turns have written, and only then claims. A claim is never taken back.
 */

import { LRUCache } from 'lru-cache';
import type { Poller, PollingAgent, QueuedTask, TaskQueueReads } from '../../queries/tasks/queue.ts';
import type { PollReason } from '../../shared/contract/tasks/queue.ts';
import { AppError, conflict } from '../../shared/errors.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { taskAssigneeRenamed, taskClaimed, taskRequeued } from '../../shared/events/tasks/queue.ts';
import { isAssignedTo } from '../../shared/identity.ts';
import type { Locks } from '../../shared/ports/locks.ts';
import { askingTogether } from '../../shared/waiting.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { assigneeIn } from './assignments.ts';
import { commentFrom } from './comments.ts';
import { moved, recordOf, type TaskState, taskDecider, taskStream } from './tasks.ts';

export interface Polled {
  readonly task: QueuedTask | null;
  readonly reason: PollReason;
}

const WAITING: readonly string[] = ['assigned', 'inbox'];

/**
 * No event when the task does not wait for this agent: deleted, assigned to another one, or in another status.
 *
 * @param agentId null: no agent has the name
 */
export function decideClaim(state: TaskState, agent: string, agentId: number | null = null): EventDraft[] {
  const { id, task } = state;
  const itsOwn = () => isAssignedTo(assigneeIn(task), { name: agent, id: agentId });
  if (id === 0 || !WAITING.includes(task.status) || !(task.assigned_to === null || itsOwn())) return [];
  const assignee = { assigned_to: agent, ...(agentId !== null && { assignee_id: agentId }) };
  return [taskClaimed.draft({ ...moved(state, { status: 'in_progress', ...assignee }), agent })];
}

/** A task that waits for any agent. */
const IN_QUEUE = { status: 'assigned', assigned_to: null };

/** After this many attempts a task has failed. */
export const MAX_ATTEMPTS = 5;

/**
 * Takes a task back from an agent that is offline or unknown. A task that was assigned to the agent waits for it again.
 * One that it claimed from the shared queue, or whose agent does not exist, waits for any agent. No event if the task
 * has been changed since.
 *
 * @param stale.since Unix seconds: a task that was changed later is not stale
 */
export function decideRequeue(
  state: TaskState,
  {
    agent,
    known,
    since,
    comment_id: commentId,
  }: { readonly agent: string; readonly known: boolean; readonly since: number; readonly comment_id: number },
): EventDraft[] {
  const { id, task, updated_at } = state;
  if (id === 0 || task.status !== 'in_progress' || task.assigned_to !== agent || updated_at > since) return [];
  const dispatchAttempts = task.dispatch_attempts + 1;
  const failed = dispatchAttempts >= MAX_ATTEMPTS;
  const silence = known ? `The agent ${agent} went offline` : `There is no agent ${agent} any more`;
  const waits = known && !state.claimed ? { status: 'assigned' } : IN_QUEUE;
  const after = failed ? { status: 'failed' } : waits;
  return [
    taskRequeued.draft({
      ...moved(state, after),
      agent,
      dispatch_attempts: dispatchAttempts,
      error_message: failed ? `${silence} while it worked on the task; that was attempt ${dispatchAttempts}.` : null,
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

/** Statuses of tasks that wait for their agent or are in progress. */
const OPEN: readonly string[] = [...WAITING, 'in_progress'];

/** Returns a task of a deleted agent to the shared queue. No event if the task has been changed since. */
export function decideRelease(state: TaskState, agentId: number): EventDraft[] {
  const { id, task } = state;
  if (id === 0 || task.assignee_id !== agentId || !OPEN.includes(task.status)) return [];
  return [
    taskRequeued.draft({
      ...moved(state, IN_QUEUE),
      agent: task.assigned_to ?? '',
      dispatch_attempts: task.dispatch_attempts,
      error_message: null,
      reason: 'agent_deleted',
    }),
  ];
}

/** The present name of the assignee. No event if the task has it, or another assignee. */
export function decideRename(
  state: TaskState,
  { id, name }: { readonly id: number; readonly name: string },
): EventDraft[] {
  const { task } = state;
  if (state.id === 0 || task.assignee_id !== id || task.assigned_to === name) return [];
  return [taskAssigneeRenamed.draft(moved(state, { assigned_to: name, assignee_id: id }))];
}

/**
 * Runs work while no other process assigns tasks to this agent automatically.
 *
 * @param work its appends must depend on `lost` (`Commands.execute`)
 * @throws AppError 409 `BUSY` when other polls of the agent take too long
 */
export const takingTurn = <T>(
  locks: Locks,
  { workspace, agent }: { readonly workspace: number; readonly agent: string },
  work: (lost: AbortSignal) => Promise<T>,
): Promise<T> => locks.holding(`work of agent ${agent} in workspace ${workspace}`, work);

/** Polls that one look is for at most. */
const POLLS = 128;
/** How many waiting tasks a look reads: few different numbers, because each is a statement of its own. */
const PAGES = [16, 64];
const MOST = 256;
/** Further candidates for each time that another process was faster. */
const FURTHER = 16;
/** Maximum number of agents that a process remembers. */
const SERVED = 10_000;
/** How long a poll keeps trying while others are faster every time, milliseconds. */
const PATIENCE_MS = 10_000;

/** The task no longer waits for this agent. */
class Gone extends Error {}

const isBusy = (error: unknown): boolean => error instanceof AppError && error.extras.code === 'BUSY';

export interface Poll {
  readonly agent: string;
  readonly agentId?: number | null;
  readonly maxCapacity: number;
}

export interface TaskQueue {
  /**
   * The task that an agent should work on now. Claims a task if the agent has capacity left.
   *
   * @param poll.agent any name; it is not checked whether the agent exists
   * @param poll.agentId id of the agent of the caller's key; null: unknown
   * @param poll.maxCapacity the maximum number of its tasks in progress, 1 or more
   * @throws AppError 409 `BUSY` when other polls are faster for too long; 503 when a store is unreachable: the task may
   *   have been claimed, which the next poll shows
   */
  poll(context: CommandContext, poll: Poll): Promise<Polled>;
}

export interface TaskQueueParts {
  readonly commands: Commands;
  /** The reads show everything in the log at the time of the call. */
  readonly reads: TaskQueueReads;
  readonly locks: Locks;
  /** How long a poll keeps trying while others are faster every time, milliseconds; default: 10 s. */
  readonly patienceMs?: number;
}

interface Asking extends Poller {
  /** Tasks that another process got first. */
  readonly missed: number;
}

interface Claimant {
  readonly agent: string;
  readonly agentId: number | null;
}

/** What one poll finds. */
interface Found extends PollingAgent {
  /** Ids of the tasks that wait for its agent or for any agent, in the order of the queue. */
  readonly waiting: readonly number[];
  /** Tasks that this process was claiming when it looked: they may wait no longer. */
  readonly claiming: ReadonlySet<number>;
}

/** The queue as one process sees it. */
export function createTaskQueue(parts: TaskQueueParts): TaskQueue {
  const { commands, reads, locks, patienceMs = PATIENCE_MS } = parts;
  /** Tasks that polls of this process are currently claiming. */
  const claiming = new Map<number, Promise<unknown>>();

  /** Concurrent polls share a look, which has a task for each of them. */
  const lookTogether = askingTogether(
    async (polls: readonly Asking[]) => {
      const inFlight = new Set(claiming.keys());
      const wanted = polls.length + inFlight.size + FURTHER * Math.max(...polls.map(({ missed }) => missed));
      const { agents, waiting } = await reads.look(polls, PAGES.find((page) => page >= wanted) ?? MOST);
      return { agents: new Map(polls.map((poll, n) => [poll, agents[n] as PollingAgent])), waiting, inFlight };
    },
    // The polls of the look before have then begun their claims, which this look leaves out.
    { most: POLLS, inOneTurn: true },
  );

  async function look(asking: Asking): Promise<Found> {
    const { workspace, agent } = asking;
    const { agents, waiting, inFlight } = await lookTogether([asking]);
    const its = waiting.filter((task) => task.workspace === workspace && (task.agent ?? agent) === agent);
    return { ...(agents.get(asking) as PollingAgent), waiting: its.map(({ id }) => id), claiming: inFlight };
  }

  /** Undefined: another poll got the task. */
  async function claim(context: CommandContext, { agent, agentId }: Claimant, id: number, lost: AbortSignal) {
    const stream = taskStream(context.origin.workspace, id);
    let before: TaskState | undefined;
    try {
      const decide = (state: TaskState) => {
        before = state;
        const drafts = decideClaim(state, agent, agentId);
        if (drafts.length === 0) throw new Gone();
        return drafts;
      };
      const { events } = await commands.execute(taskDecider, stream, context, decide, { unless: lost });
      const [event] = events;
      return before && event && taskDecider.evolve(before, { at: event.meta.at, ...event });
    } catch (error) {
      if (error instanceof Gone || isBusy(error)) return undefined;
      throw error;
    }
  }

  function tryToClaim(context: CommandContext, claimant: Claimant, id: number, lost: AbortSignal) {
    const claimed = claim(context, claimant, id, lost).finally(() => claiming.delete(id));
    claiming.set(id, claimed);
    return claimed;
  }

  async function claimNext(
    context: CommandContext,
    { agent, agentId, maxCapacity }: Poll,
    lost: AbortSignal,
  ): Promise<Polled> {
    const { workspace } = context.origin;
    const giveUpAt = performance.now() + patienceMs;
    /** Tasks that another process got first. */
    const missed = new Set<number>();
    while (performance.now() < giveUpAt) {
      const found = await look({ workspace, agent, missed: missed.size });
      const { waiting } = found;
      if (found.count >= maxCapacity) return full(found, maxCapacity);
      if (waiting.length === 0) return idle(found);
      // Polls that shared the look go on one after another, and each takes the first task that no other is claiming.
      const free = waiting.filter((id) => !claiming.has(id) && !found.claiming.has(id) && !missed.has(id));
      // Other processes want the same candidates, so later attempts pick at random.
      const id = free[missed.size === 0 ? 0 : Math.floor(Math.random() * free.length)];
      if (id === undefined) {
        // A task may be back in the queue once those who claim it have finished.
        await Promise.allSettled(waiting.map((one) => claiming.get(one)));
        missed.clear();
        continue;
      }
      const claimed = await tryToClaim(context, { agent, agentId: agentId ?? found.id }, id, lost);
      if (claimed) return { task: recordOf(claimed, workspace), reason: 'assigned' };
      missed.add(id);
    }
    throw conflict('Other polls claimed every task first; poll again.', { code: 'BUSY' });
  }

  /** Agents whose last poll got a task. */
  const served = new LRUCache<string, true>({ max: SERVED });

  return {
    async poll(context, poll) {
      const { agent, maxCapacity } = poll;
      const { workspace } = context.origin;
      const key = `${workspace} ${agent}`;
      if (!locks.isAlone && !served.has(key)) {
        // Most polls find nothing to claim, and need no lock for that. After a task, there is likely to be another.
        const found = await look({ workspace, agent, missed: 0 });
        if (found.count >= maxCapacity) return full(found, maxCapacity);
        if (found.waiting.length === 0) return idle(found);
      }
      const polled = await takingTurn(locks, { workspace, agent }, (lost) => claimNext(context, poll, lost));
      if (polled.reason === 'assigned') served.set(key, true);
      else served.delete(key);
      return polled;
    },
  };
}

/** An agent with a limit of one task continues with that task. */
const full = (found: PollingAgent, maxCapacity: number): Polled =>
  maxCapacity === 1 ? idle(found) : { task: null, reason: 'at_capacity' };

/** Nothing to claim: the agent continues with its newest task. */
const idle = ({ newest }: PollingAgent): Polled =>
  newest ? { task: newest, reason: 'continue_current' } : { task: null, reason: 'no_tasks_available' };
