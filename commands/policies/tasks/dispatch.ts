/**
 * Whenever a task is assigned to an agent, the agent runner is asked to have the agent work on it.
 *
 * A schedule decides that a task is handed over; the event on the task's own stream decides between several processes.
 * The event is followed by a job that asks the runner, with the same `Idempotency-Key` in each attempt, until the stream
 * says how the runner has answered, or that the task is in other hands by now. Automatic reviews (`quality/verdicts.ts`)
 * go the same way.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { ticketRef } from '../../../shared/contract/tasks/tasks.ts';
import type { DomainEvent, EventDraft } from '../../../shared/events/define.ts';
import { taskDispatched } from '../../../shared/events/tasks/dispatch.ts';
import { defineJob, handleJob, type JobHandler, type JobRun } from '../../../shared/ports/jobs.ts';
import type { Locks } from '../../../shared/ports/locks.ts';
import { type Runner, RunnerError, type WorkAnswer, type WorkRequest } from '../../../shared/ports/runner.ts';
import type { DispatchReads, NextTask, WaitingTask } from '../../../shared/ports/tasks/dispatch.ts';
import { HOUR, seconds } from '../../../shared/time.ts';
import { breachesIn, type PromptPart, promptOf, type Quotation } from '../../agents/prompts.ts';
import type { Commands, Executed } from '../../handler.ts';
import {
  decideDispatch,
  decideDispatchAnswer,
  decideDispatchFailed,
  decideWithheld,
  isAsked,
  targetSession,
  taskPrompt,
} from '../../tasks/dispatch.ts';
import { takingTurn } from '../../tasks/queue.ts';
import { type Asked, type TaskState, taskDecider, taskStream } from '../../tasks/tasks.ts';
import { definePolicy, scheduledContext, unlessBusy, wantJob, whenever } from '../policy.ts';

/** Tasks of a workspace that the runner is asked for at a time. */
export const AT_ONCE = 3;
/** Candidates of a workspace that are looked at in one turn. */
const CANDIDATES = 20;
/** After this long the job of a task is gone: it must have ended long ago, however slow the runner is; seconds. */
const FORGOTTEN = 2 * HOUR;
/** Forgotten tasks in one turn. */
const FORGOTTEN_AT_ONCE = 100;
/** Longer than the runner may be waited for at most (`RUNNER_TIMEOUT_MS`), milliseconds. */
const ASK_MS = 660_000;

const payloadSchema = z.object({
  tenant: z.int(),
  workspace: z.int(),
  /** The event behind the job. */
  event: z.string(),
  correlation: z.string(),
  task: z.int(),
  run: z.int(),
});
export type AskPayload = z.infer<typeof payloadSchema>;

export const askJob = (name: string) => defineJob({ name, schema: payloadSchema, timeoutMs: ASK_MS });
export const dispatchJob = askJob('task-dispatch-run');

export const payloadOf = ({
  id,
  meta,
  data,
}: DomainEvent<string, { readonly taskId: number; readonly run: number }>): AskPayload => ({
  tenant: meta.tenant,
  workspace: meta.workspace,
  event: id,
  correlation: meta.correlationId,
  task: data.taskId,
  run: data.run,
});

export const dispatchPolicy = definePolicy(
  'task-dispatch',
  [whenever(taskDispatched, (event) => [wantJob(dispatchJob, payloadOf(event))])],
  'beginning',
);

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
        state.updatedAt > since ? [] : decide(state, state.asked?.run ?? 0, 'Nothing was heard of it in two hours.'),
      ),
    );
  }
}

export interface RunnerWork {
  readonly commands: Commands;
  readonly reads: DispatchReads;
  /** Undefined: none is configured. */
  readonly runner: Runner | undefined;
  /** Unix ms */
  readonly now: () => number;
}

/** What is asked of the runner, and what follows from its answer. */
export interface Errand {
  readonly what: Asked['what'];
  /** Whatever the request has besides what every request has. @throws RunnerError when it cannot be made */
  readonly request: (state: TaskState, workspace: number, ticket: string) => Promise<Requested>;
  /** What the answer leads to; ids are taken before. */
  readonly answered: (answer: WorkAnswer) => Promise<(state: TaskState, run: number) => readonly EventDraft[]>;
  readonly failed: (state: TaskState, run: number, reason: string) => readonly EventDraft[];
}

/** @property also texts that the request carries besides those of the prompt */
interface Requested {
  readonly specific: Specific;
  readonly prompt: readonly PromptPart[];
  readonly also: readonly Quotation[];
}

type Common = 'workspaceId' | 'taskId' | 'ticketRef' | 'title' | 'priority' | 'attempt' | 'prompt' | 'idempotencyKey';
type Specific = WorkRequest extends infer One ? (One extends WorkRequest ? Omit<One, Common> : never) : never;

/** Asks the runner, unless that is done or no longer wanted. @throws RunnerError when it is to be tried again */
export async function runErrand(
  { commands, reads, runner }: RunnerWork,
  { what, request, answered, failed }: Errand,
  payload: AskPayload,
  job: JobRun,
): Promise<void> {
  const { tenant, workspace, task: id, run, event, correlation } = payload;
  const stream = taskStream(workspace, id);
  const { origin } = scheduledContext(correlation, tenant, workspace);
  const context = () => ({ origin: { ...origin, causationId: event } });
  const { state } = await commands.load(taskDecider, stream);
  if (!isAsked(state, what, run)) return;
  let answer: WorkAnswer;
  try {
    const ticket = ticketRef(await reads.prefix(workspace, state.task.projectId), state.task.ticketNo);
    const { specific, prompt, also } = await request(state, workspace, ticket);
    const breaches = breachesIn([...prompt, ...also]);
    if (breaches.length > 0) {
      await commands.execute(taskDecider, stream, context(), (now) => decideWithheld(now, what, run, breaches));
      return;
    }
    if (!runner) throw new RunnerError('The process that calls the agent runner has no RUNNER_URL.', true);
    const common = {
      workspaceId: workspace,
      taskId: id,
      ticketRef: ticket,
      title: state.task.title,
      priority: state.task.priority,
      attempt: run,
      // The event makes it another one than that of a task with the same number in another deployment.
      idempotencyKey: `task-${id}-${what}-${run}-${event}`,
    };
    answer = await runner.work({ ...common, ...specific, prompt: promptOf(prompt) }, job.signal);
  } catch (error) {
    // A process that stops says nothing of the runner.
    if (!(error instanceof RunnerError) || job.signal.aborted) throw error;
    if (error.retry && !job.last) throw error;
    await commands.execute(taskDecider, stream, context(), (now) => failed(now, run, error.message));
    return;
  }
  const decide = await answered(answer);
  await commands.execute(taskDecider, stream, context(), (now) => decide(now, run));
}

export const dispatchJobs = (work: RunnerWork): readonly JobHandler[] => [
  handleJob(dispatchJob, (payload, job) => runErrand(work, dispatchErrand(work), payload, job)),
];

const dispatchErrand = ({ commands, reads }: RunnerWork): Errand => ({
  what: 'dispatch',
  async request(state, workspace, ticket) {
    const { assignedTo } = state.task;
    const agent = await reads.agent(workspace, assignedTo ?? '');
    if (!agent) throw new RunnerError(`There is no agent ${assignedTo} any more.`, false);
    const rejection = await reads.rejection(workspace, state.id);
    const sessionId = targetSession(state);
    const about = [agent.name, agent.role, ...(sessionId === null ? [] : [sessionId])];
    return {
      specific: { kind: 'task', agent, sessionId },
      prompt: taskPrompt(state, ticket, rejection),
      also: [{ what: 'name, role or session', by: `agent ${agent.name}`, text: about.join('\n') }],
    };
  },
  async answered(answer) {
    const commentId = await commands.counters.take('comment');
    return (state, run) => decideDispatchAnswer(state, run, answer, commentId);
  },
  failed: decideDispatchFailed,
});
