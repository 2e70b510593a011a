/** Tasks that are handed to the agent runner for their assignee. `commands/policies/tasks/dispatch.ts` hands them over. */
import { TARGET_SESSION } from '../../shared/contract/tasks/dispatch.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import {
  taskDispatchAccepted,
  taskDispatchCompleted,
  taskDispatched,
  taskDispatchFailed,
  taskWithheld,
} from '../../shared/events/tasks/dispatch.ts';
import type { WorkResponse } from '../../shared/ports/runner.ts';
import { frontOf } from '../../shared/storable.ts';
import { type Breach, breachReason, type PromptPart, type Quotation } from '../agents/prompts.ts';
import { commentFrom } from './comments.ts';
import { MAX_ATTEMPTS } from './queue.ts';
import { type Asked, GATEKEEPER, moved, ofTask, type TaskState } from './tasks.ts';

/** Maximum number of characters in a task's error message. */
const MAX_ERROR = 5_000;

/** Whether the runner has not yet responded to this request. */
export const isAsked = ({ asked }: TaskState, what: Asked['what'], run: number): boolean =>
  asked !== null && asked.what === what && asked.run === run && !asked.accepted;

/** No event when the task was deleted, or no longer waits for this agent. */
export function decideDispatch(
  state: TaskState,
  { agent_id, agent }: { readonly agent_id: number; readonly agent: string },
): EventDraft[] {
  const { id, task, runs } = state;
  if (id === 0 || task.status !== 'assigned' || task.assigned_to !== agent) return [];
  return [taskDispatched.draft({ ...moved(state, { status: 'in_progress' }), agent_id, agent, run: runs + 1 })];
}

/** Handles the response to the dispatch with this number. No event if the task was changed in the meantime. */
export function decideDispatchResponse(
  state: TaskState,
  run: number,
  { status, output, error, sessionId }: WorkResponse,
  commentId: number,
): EventDraft[] {
  const { task, asked } = state;
  if (!isAsked(state, 'dispatch', run) || !asked?.agent_id) return [];
  const { agent_id } = asked;
  if (status === 'failed') return decideDispatchFailed(state, run, error ?? output ?? 'The agent gave no reason.');
  const agent = task.assigned_to ?? '';
  const by = { agent, run, session_id: sessionId };
  if (status === 'accepted') return [taskDispatchAccepted.draft({ ...ofTask(state), ...by })];
  const resolution = output === null || output.trim() === '' ? null : output;
  return [
    taskDispatchCompleted.draft({ ...moved(state, { status: 'review' }), ...by, agent_id, resolution }),
    ...(resolution === null ? [] : commentFrom(state, { id: commentId, author: agent, content: resolution })),
  ];
}

/** Records that the dispatch with this number failed. */
export function decideDispatchFailed(state: TaskState, run: number, reason: string): EventDraft[] {
  const { task } = state;
  if (!isAsked(state, 'dispatch', run)) return [];
  const dispatchAttempts = task.dispatch_attempts + 1;
  const status = dispatchAttempts >= MAX_ATTEMPTS ? 'failed' : 'assigned';
  return [
    taskDispatchFailed.draft({
      ...moved(state, { status }),
      agent: task.assigned_to ?? '',
      run,
      dispatch_attempts: dispatchAttempts,
      error_message: frontOf(reason, MAX_ERROR),
    }),
  ];
}

/** The session that the runner is asked to continue. */
export function targetSession({ task: { metadata } }: TaskState): string | null {
  const target = metadata[TARGET_SESSION];
  return typeof target === 'string' && target.trim() !== '' ? target : null;
}

/** A text of a task, with its author. */
export function quoted({ writers, source }: TaskState, what: keyof TaskState['writers'], text: string): Quotation {
  const { github_repo: repo, github_issue_number: issue } = source ?? {};
  const writer = writers[what] ?? 'an unknown writer';
  return { what, by: writer === 'GitHub' && repo ? `GitHub issue ${repo}#${issue}` : writer, text };
}

/** The task in words, as agents and reviewers read it. @param ticket such as `API-042` */
export function describedTask(state: TaskState, ticket: string): PromptPart[] {
  const { title, description, tags } = state.task;
  return [
    `[Task ${ticket}]`,
    quoted(state, 'title', title),
    ...(description === null || description.trim() === '' ? [] : [quoted(state, 'description', description)]),
    ...(tags.length === 0 ? [] : [quoted(state, 'tags', tags.join(', '))]),
  ];
}

/** The prompt for the agent. @param rejection why the reviewer rejected the last result; null: not rejected */
export const taskPrompt = (state: TaskState, ticket: string, rejection: string | null): PromptPart[] => [
  ...describedTask(state, ticket),
  ...(rejection === null
    ? []
    : [
        'The last result was rejected. Take the notes of the review into account.',
        { what: 'review notes', by: GATEKEEPER, text: rejection },
      ]),
];

/** Records that the text was withheld. No event if the task was changed in the meantime. */
export function decideWithheld(
  state: TaskState,
  what: Asked['what'],
  run: number,
  breaches: readonly Breach[],
): EventDraft[] {
  if (!isAsked(state, what, run)) return [];
  const next = what === 'dispatch' ? 'assigned' : 'review';
  return [
    taskWithheld.draft({
      ...moved(state, { status: 'awaiting_owner' }),
      what,
      agent: state.task.assigned_to,
      run,
      breaches: [...breaches],
      error_message: frontOf(
        `${breachReason(breaches)} Change the text, then set the status to ${next} again.`,
        MAX_ERROR,
      ),
    }),
  ];
}
