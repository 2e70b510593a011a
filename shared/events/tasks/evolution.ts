/** What a task is after an event. Decisions (`commands/tasks/tasks.ts`) and rows (`projections/tasks/tasks.ts`) use it. */
import { SESSION } from '../../contract/tasks/dispatch.ts';
import { spawnedMetadata } from '../../contract/tasks/recurrence.ts';
import { seconds } from '../../time.ts';
import type { EventDefinition, EventOf } from '../define.ts';
import { taskLinked, taskSynced, withIssueState } from '../github/links.ts';
import { taskReviewed } from '../quality/reviews.ts';
import { taskReviewAbandoned, taskReviewAccepted, taskReviewRequested, taskVerdictGiven } from '../quality/verdicts.ts';
import { taskBranched, taskPullOpened } from './branches.ts';
import { taskStatusChanged, taskUpdated } from './changes.ts';
import { taskAssigned } from './comments.ts';
import {
  taskDispatchAccepted,
  taskDispatchCompleted,
  taskDispatched,
  taskDispatchFailed,
  taskWithheld,
} from './dispatch.ts';
import { taskAssigneeRenamed, taskClaimed, taskRequeued } from './queue.ts';
import { taskRecurred } from './recurrence.ts';
import { taskRouted } from './routing.ts';
import { placeOf, type TaskData, type TaskSource, taskMoved } from './tasks.ts';

export interface TaskChange {
  readonly task?: Partial<TaskData>;
  /** The metadata afterwards, for events that change only some keys of it. */
  readonly metadata?: (before: TaskData['metadata']) => TaskData['metadata'];
  readonly source?: Partial<TaskSource>;
  /** The request to the agent runner. By default it is withdrawn if the task gets another status or assignee. */
  readonly asked?: 'dispatch' | 'review' | 'accepted' | null;
  /** Of a recurring task: the last due minute, Unix seconds, and the task created for it. */
  readonly recurred?: { readonly due_at: number; readonly child_id: number };
  /** The record's `updated_at` stays. */
  readonly quiet?: true;
}

// biome-ignore lint/suspicious/noExplicitAny: any definition; the data of its events is inferred.
type AnyDefinition = EventDefinition<any, any>;

// biome-ignore lint/suspicious/noExplicitAny: `when` ties the function to the data of its definitions.
type ChangeOf = (data: any, at: number) => TaskChange;

/** @param change `at`: time of the event, Unix ms */
const when = <const D extends AnyDefinition>(
  definitions: readonly D[],
  change: (data: EventOf<D>['data'], at: number) => TaskChange,
): [string, ChangeOf][] => definitions.map(({ type }) => [type, change]);

const withError = (errorMessage: string | null): Partial<TaskData> =>
  errorMessage === null ? {} : { error_message: errorMessage };

/** The session id that the runner has reported for the agent. */
const withSession = (sessionId: string | null): Pick<TaskChange, 'metadata'> =>
  sessionId === null ? {} : { metadata: (before) => ({ ...before, [SESSION]: sessionId }) };

const CHANGES: ReadonlyMap<string, ChangeOf> = new Map([
  ...when([taskUpdated], ({ task }) => ({ task })),
  ...when([taskAssigned, taskAssigneeRenamed, taskClaimed, taskRouted, taskReviewAbandoned], ({ after }) => ({
    task: placeOf(after),
  })),
  ...when([taskMoved], ({ after, project_ticket_no }) => ({ task: { ...placeOf(after), project_ticket_no } })),
  ...when([taskStatusChanged], ({ after, completed_at }) => ({ task: { ...placeOf(after), completed_at } })),
  ...when([taskReviewed], ({ after, completed_at, error_message: error }) => ({
    task: { ...placeOf(after), completed_at, ...withError(error) },
  })),
  ...when([taskVerdictGiven], ({ after, completed_at, dispatch_attempts, error_message: error }) => ({
    task: { ...placeOf(after), completed_at, dispatch_attempts, ...withError(error) },
  })),
  ...when([taskRequeued, taskDispatchFailed], ({ after, dispatch_attempts, error_message: error }) => ({
    task: { ...placeOf(after), dispatch_attempts, ...withError(error) },
  })),
  ...when([taskWithheld], ({ after, error_message }) => ({ task: { ...placeOf(after), error_message } })),
  ...when([taskDispatched], ({ after }) => ({ task: placeOf(after), asked: 'dispatch' })),
  ...when([taskReviewRequested], ({ after }) => ({ task: placeOf(after), asked: 'review' })),
  ...when([taskReviewAccepted], () => ({ asked: 'accepted', quiet: true })),
  ...when([taskDispatchAccepted], ({ session_id }) => ({ ...withSession(session_id), asked: 'accepted' })),
  ...when([taskDispatchCompleted], ({ after, resolution, session_id }) => ({
    task: { ...placeOf(after), outcome: 'success', resolution },
    ...withSession(session_id),
    asked: null,
  })),
  ...when([taskRecurred], ({ due_at, child_id, spawn_count }, at) => ({
    metadata: (before) => spawnedMetadata(before, seconds(at), spawn_count),
    recurred: { due_at, child_id },
  })),
  ...when([taskLinked, taskSynced], (data, at) => ({
    metadata: (before) => withIssueState(before, 'issue_state' in data ? data.issue_state : data.issue.state, at),
    source: {
      github_repo: data.repo,
      github_issue_number: data.issue_number,
      github_synced_at: seconds(at),
    },
    quiet: true,
  })),
  ...when([taskBranched], ({ branch }) => ({ source: { github_branch: branch }, quiet: true })),
  ...when([taskPullOpened], ({ pull_number }) => ({
    source: { github_pr_number: pull_number, github_pr_state: 'open' },
    quiet: true,
  })),
]);

/** Types of events that change an existing task. */
export const TASK_CHANGES: readonly string[] = [...CHANGES.keys()];

/** What an event changes in its task; nothing for other events. @param event.at Unix ms */
export const taskChange = (event: { readonly type: string; readonly data: object; readonly at: number }): TaskChange =>
  CHANGES.get(event.type)?.(event.data, event.at) ?? {};

/**
 * The fields that a task gets by a change. A change that says who the assignee is, says it whole: without an id, the
 * assignee is no agent.
 *
 * @param metadata of the task before it
 */
export const fieldsAfter = (
  metadata: TaskData['metadata'],
  { task, metadata: change }: TaskChange,
): Partial<TaskData> => ({
  ...task,
  ...(task?.assigned_to !== undefined && { assignee_id: task.assignee_id }),
  ...(change && { metadata: change(metadata) }),
});
