/**
 * Whenever a task is assigned to an agent, the agent runner is asked to have the agent work on it.
 *
 * A schedule (`commands/schedules/tasks/dispatch.ts`) decides that a task is handed over; the event on the task's own
 * stream ensures that only one process does it. A job follows from the event. It asks the runner, with the same
 * `Idempotency-Key` in each attempt, until the stream contains the runner's response, or the task has been reassigned.
 * Automatic reviews (`quality/verdicts.ts`) use the same mechanism.
 */
import { z } from 'zod';
import type { DispatchReads } from '../../../queries/tasks/dispatch.ts';
import type { DomainEvent, EventDraft } from '../../../shared/events/define.ts';
import { taskDispatched } from '../../../shared/events/tasks/dispatch.ts';
import { ticketRef } from '../../../shared/events/tasks/tasks.ts';
import { defineJob, handleJob, type JobHandler, type JobRun } from '../../../shared/ports/jobs.ts';
import { type Runner, RunnerError, type WorkRequest, type WorkResponse } from '../../../shared/ports/runner.ts';
import { breachesIn, type PromptPart, promptOf, type Quotation } from '../../agents/prompts.ts';
import type { Commands } from '../../handler.ts';
import {
  decideDispatchFailed,
  decideDispatchResponse,
  decideWithheld,
  isAsked,
  targetSession,
  taskPrompt,
} from '../../tasks/dispatch.ts';
import { type Asked, type TaskState, taskDecider, taskStream } from '../../tasks/tasks.ts';
import { cause, causedBy, causeOf, definePolicy, wantJob, whenever } from '../policy.ts';

/** Longer than the maximum wait for the runner (`RUNNER_TIMEOUT_MS`), milliseconds. */
const ASK_MS = 660_000;

const payloadSchema = cause.extend({ task: z.int(), run: z.int() });
export type AskPayload = z.infer<typeof payloadSchema>;

export const askJob = (name: string) => defineJob({ name, schema: payloadSchema, timeoutMs: ASK_MS });
export const dispatchJob = askJob('task-dispatch-run');

export const payloadOf = (
  event: DomainEvent<string, { readonly task_id: number; readonly run: number }>,
): AskPayload => ({ ...causeOf(event), task: event.data.task_id, run: event.data.run });

export const dispatchPolicy = definePolicy(
  'task-dispatch',
  [whenever(taskDispatched, (event) => [wantJob(dispatchJob, payloadOf(event))])],
  'beginning',
);

export interface RunnerWork {
  readonly commands: Commands;
  readonly reads: DispatchReads;
  /** Undefined if no runner is configured. */
  readonly runner: Runner | undefined;
  /** Unix ms */
  readonly now: () => number;
}

/** A request to the runner, and the handling of its response. */
export interface Errand {
  readonly what: Asked['what'];
  /** The specific fields of the request. @throws RunnerError when the request cannot be built */
  readonly request: (state: TaskState, workspace: number, ticket: string) => Promise<Requested>;
  /** The decision on the response; ids are reserved beforehand. */
  readonly answered: (response: WorkResponse) => Promise<(state: TaskState, run: number) => readonly EventDraft[]>;
  readonly failed: (state: TaskState, run: number, reason: string) => readonly EventDraft[];
}

/** @property also further texts in the request, besides those of the prompt */
interface Requested {
  readonly specific: Specific;
  readonly prompt: readonly PromptPart[];
  readonly also: readonly Quotation[];
}

type Common = 'workspaceId' | 'taskId' | 'ticketRef' | 'title' | 'priority' | 'attempt' | 'prompt' | 'idempotencyKey';
type Specific = WorkRequest extends infer One ? (One extends WorkRequest ? Omit<One, Common> : never) : never;

/** Asks the runner, unless that is done or no longer needed. @throws RunnerError when it should be retried */
export async function runErrand(
  { commands, reads, runner }: RunnerWork,
  { what, request, answered, failed }: Errand,
  payload: AskPayload,
  job: JobRun,
): Promise<void> {
  const { workspace, task: id, run, event } = payload;
  const stream = taskStream(workspace, id);
  const context = () => causedBy(payload);
  const { state } = await commands.load(taskDecider, stream);
  if (!isAsked(state, what, run)) return;
  let response: WorkResponse;
  try {
    const ticket = ticketRef(await reads.prefix(workspace, state.task.project_id), state.task.project_ticket_no);
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
      // The event's id distinguishes the task from one with the same number in another deployment.
      idempotencyKey: `task-${id}-${what}-${run}-${event}`,
    };
    response = await runner.work({ ...common, ...specific, prompt: promptOf(prompt) }, job.signal);
  } catch (error) {
    // An abort because this process stops says nothing about the runner.
    if (!(error instanceof RunnerError) || job.signal.aborted) throw error;
    if (error.retry && !job.last) throw error;
    await commands.execute(taskDecider, stream, context(), (now) => failed(now, run, error.message));
    return;
  }
  const decide = await answered(response);
  await commands.execute(taskDecider, stream, context(), (now) => decide(now, run));
}

export const dispatchJobs = (work: RunnerWork): readonly JobHandler[] => [
  handleJob(dispatchJob, (payload, job) => runErrand(work, dispatchErrand(work), payload, job)),
];

const dispatchErrand = ({ commands, reads }: RunnerWork): Errand => ({
  what: 'dispatch',
  async request(state, workspace, ticket) {
    const { assigned_to: assignedTo } = state.task;
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
  async answered(response) {
    const commentId = await commands.counters.take('comment');
    return (state, run) => decideDispatchResponse(state, run, response, commentId);
  },
  failed: decideDispatchFailed,
});
