/**
 * Tasks linked to issues of GitHub, and the sync of changes between them.
 *
 * The stream of an issue names its task, so two syncs never create two tasks for one issue: the first append sets the
 * task's id, and the task's stream must not exist yet. If a process dies between the two, the next sync finds an id
 * without a task, and creates that task.
 *
 * Both sides are compared with the last agreed state, field by field. A change on one side is copied to the other; if
 * both have changed a field, the later change wins.
 */
import { createHash } from 'node:crypto';
import { priorityIn, priorityLabel, statusIn, statusLabel } from '../../shared/contract/github/issues.ts';
import type { TaskStatus } from '../../shared/contract/tasks/tasks.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { githubIssueClosed, githubIssueCommented } from '../../shared/events/github/issues.ts';
import {
  githubIssueClaimed,
  type IssueFace,
  type TaskFace,
  taskIssueGone,
  taskLinked,
  taskSynced,
} from '../../shared/events/github/links.ts';
import { type TaskData, taskCreated } from '../../shared/events/tasks/tasks.ts';
import type { GithubIssue } from '../../shared/ports/github/client.ts';
import { frontOf } from '../../shared/storable.ts';
import { seconds } from '../../shared/time.ts';
import { defineDecider, on } from '../decider.ts';
import type { Ticket } from '../projects/tickets.ts';
import { decideUpdate, ISSUE_TEXT_CUT, type TaskFields } from '../tasks/changes.ts';
import { type TaskState, taskDecider } from '../tasks/tasks.ts';

/** The task linked to an issue; 0: none. */
export interface IssueState {
  readonly task_id: number;
}

export const issueDecider = defineDecider<IssueState>({
  kind: 'issue',
  initial: { task_id: 0 },
  folds: [
    on(githubIssueClaimed, (_, { data }) => ({ task_id: data.task_id })),
    on([githubIssueCommented, githubIssueClosed], (state) => state),
  ],
});

/** GitHub ignores case in names of repositories. */
export const issueStream = (workspace: number, repo: string, issue: number): string =>
  `github_issue-${workspace}-${encodeURIComponent(`${repo.toLowerCase()}#${issue}`)}`;

/**
 * No event when the issue has been linked to another task since.
 *
 * @param known the task that it was linked to; 0: none
 */
export const decideClaim = (
  state: IssueState,
  known: number,
  claim: { readonly repo: string; readonly issue_number: number; readonly task_id: number },
): EventDraft[] => (state.task_id === known ? [githubIssueClaimed.draft(claim)] : []);

/** Maximum number of characters in a task's description, and in its tags. */
const MAX_DESCRIPTION = 5_000;
const MAX_TAGS = 50;
/** Maximum number of characters of a title at GitHub. */
const MAX_TITLE = 256;

const hashOf = (text: string | null): string =>
  createHash('md5')
    .update(text ?? '')
    .digest('hex');

const isCut = (body: string | null): boolean => (body?.length ?? 0) > MAX_DESCRIPTION;

export const faceOfIssue = ({ title, body, state, labels }: GithubIssue): IssueFace => ({
  title,
  body_hash: hashOf(body),
  body_cut: isCut(body),
  state,
  labels: labels.map(({ name }) => name),
});

export const faceOfTask = ({ title, description, status, priority }: TaskData): TaskFace => ({
  title,
  description_hash: hashOf(description),
  status,
  priority,
});

const titleOf = ({ title, number }: GithubIssue): string => title.trim() || `Issue ${number}`;
const descriptionOf = ({ body }: GithubIssue): string => frontOf(body ?? '', MAX_DESCRIPTION);
const tagsOf = (labels: readonly string[]): string[] =>
  [...new Set(labels.filter((label) => label !== ''))].slice(0, MAX_TAGS);

export interface Imported extends Ticket {
  readonly id: number;
  readonly repo: string;
  readonly issue: GithubIssue;
  readonly assigned_to: string | null;
  readonly created_by: string;
}

/** Creates a task for an issue; no event if it exists. @param now Unix ms */
export function decideImport(state: TaskState, imported: Imported, now: number): EventDraft[] {
  if (state.id !== 0) return [];
  const { id, repo, issue, assigned_to, created_by, ...ticket } = imported;
  const face = faceOfIssue(issue);
  const closed = issue.state === 'closed';
  const open = statusIn(face.labels) ?? (assigned_to === null ? 'inbox' : 'assigned');
  const task: TaskData = {
    ...taskDecider.initial.task,
    ...ticket,
    title: titleOf(issue),
    description: issue.body === null ? null : descriptionOf(issue),
    // An issue that was closed before its import was never reviewed on this board, so it is done.
    status: closed ? 'done' : open === 'done' ? 'review' : open,
    completed_at: closed ? seconds(now) : null,
    priority: priorityIn(face.labels) ?? 'medium',
    assigned_to,
    created_by,
    tags: tagsOf(face.labels),
    metadata: {
      github_repo: repo,
      github_issue_number: issue.number,
      github_issue_url: issue.url,
      github_synced_at: new Date(now).toISOString(),
      github_state: issue.state,
    },
  };
  const { title } = task;
  return [
    taskCreated.draft({ task_id: id, task, source: 'github' }),
    taskLinked.draft({
      task_id: id,
      title,
      repo,
      issue_number: issue.number,
      issue_url: issue.url,
      issue_updated_at: issue.updatedAt,
      issue: face,
      face: faceOfTask(task),
    }),
  ];
}

/** The status that an issue implies for its task: `done` if it is closed; undefined: none. */
const statusSaid = ({ state, labels }: IssueFace): TaskStatus | undefined =>
  state === 'closed' ? 'done' : statusIn(labels);

/** The status of a task after its issue implies another one. */
function statusAfter({ task, approved }: TaskState, said: TaskStatus | undefined): TaskStatus {
  if (said === 'done') return task.status === 'done' || approved ? 'done' : 'review';
  if (said !== undefined) return said;
  // It was opened again.
  if (task.status === 'done') return task.assigned_to === null ? 'inbox' : 'assigned';
  return task.status as TaskStatus;
}

/**
 * Applies newer changes of an issue to its task. No event if the issue is unchanged, or was read before a change that
 * is already known.
 *
 * @param now Unix seconds
 */
export function decidePull(state: TaskState, repo: string, issue: GithubIssue, now: number): EventDraft[] {
  const { agreed, source, task } = state;
  if (!agreed || !isLinked(state, repo, issue.number) || issue.updatedAt < agreed.issue_updated_at) return [];
  const face = faceOfIssue(issue);
  if (!agreed.gone && JSON.stringify(face) === JSON.stringify(agreed.issue)) return [];
  const mine = faceOfTask(task);
  const isLater = Date.parse(issue.updatedAt) / 1_000 >= state.updated_at;
  /** Whether the issue's value of a field wins. */
  const taken = (differs: boolean, field: keyof TaskFace): boolean =>
    differs && (mine[field] === agreed.face[field] || isLater);
  const [said, saidBefore] = [statusSaid(face), statusSaid(agreed.issue)];
  const [urgency, urgencyBefore] = [priorityIn(face.labels), priorityIn(agreed.issue.labels)];
  const tags = tagsOf(face.labels);
  const takes = {
    title: taken(face.title !== agreed.issue.title, 'title'),
    // A text that was cut here could not be pushed, so the issue's wins.
    description_hash:
      taken(face.body_hash !== agreed.issue.body_hash, 'description_hash') ||
      (face.body_cut && face.body_hash !== agreed.issue.body_hash),
    status: taken(said !== saidBefore, 'status'),
    priority: taken(urgency !== urgencyBefore, 'priority'),
  };
  const status = statusAfter(state, said);
  const fields: TaskFields = {
    ...(takes.title && { title: titleOf(issue) }),
    ...(takes.description_hash && { description: descriptionOf(issue) }),
    ...(takes.status && status !== task.status && { status }),
    ...(takes.priority && { priority: urgency ?? 'medium' }),
    ...(JSON.stringify(tags) !== JSON.stringify(tagsOf(agreed.issue.labels)) && { tags }),
  };
  const change = { fields, by: 'github-sync', mentioned: [], move: undefined, now };
  const changed = decideUpdate(state, change);
  const after = changed.reduce((before, draft) => taskDecider.evolve(before, { at: now * 1_000, ...draft }), state);
  const next = faceOfTask(after.task);
  return [
    ...changed,
    taskSynced.draft({
      task_id: state.id,
      title: after.task.title,
      repo: source?.github_repo ?? repo,
      issue_number: issue.number,
      issue_updated_at: issue.updatedAt,
      issue: face,
      // Fields where the task's value wins still differ, so they are pushed next.
      face: {
        title: takes.title ? next.title : agreed.face.title,
        description_hash: takes.description_hash ? next.description_hash : agreed.face.description_hash,
        status: takes.status ? next.status : agreed.face.status,
        priority: takes.priority ? next.priority : agreed.face.priority,
      },
      direction: 'pull',
      issue_state: issue.state,
    }),
  ];
}

const isLinked = ({ id, source }: TaskState, repo: string, issue: number): boolean =>
  id !== 0 && source?.github_repo?.toLowerCase() === repo.toLowerCase() && source.github_issue_number === issue;

export interface Push {
  /** Fields of the issue to set. */
  readonly fields: { readonly title?: string; readonly body?: string; readonly state?: 'open' | 'closed' };
  readonly addLabels: readonly string[];
  readonly removeLabels: readonly string[];
  /** The fields of the task that agree with the issue after the push. */
  readonly face: TaskFace;
  /** Fields that cannot be pushed, each with the reason. */
  readonly refused: readonly string[];
}

/**
 * Changes of a task that are newer than its issue; undefined: none.
 *
 * @param labels whether labels show status and priority
 */
export function pushOf({ id, task, agreed }: TaskState, labels: boolean): Push | undefined {
  if (id === 0 || !agreed || agreed.gone) return undefined;
  const face = faceOfTask(task);
  if (JSON.stringify(face) === JSON.stringify(agreed.face)) return undefined;
  const state = task.status === 'done' ? 'closed' : 'open';
  const isNew = (field: keyof TaskFace) => face[field] !== agreed.face[field];
  const keepsBody = isNew('description_hash') && agreed.issue.body_cut;
  const characters = [...face.title].length;
  const keepsTitle = isNew('title') && characters > MAX_TITLE;
  const added = labels
    ? [
        ...(face.status === agreed.face.status ? [] : [statusLabel(face.status)]),
        ...(face.priority === agreed.face.priority ? [] : [priorityLabel(face.priority)]),
      ]
    : [];
  /** Labels that are now outdated. */
  const stale = (label: string): boolean => {
    const name = label.toLowerCase();
    return (
      !added.includes(name) &&
      added.some((one) => name.startsWith(one.slice(0, one.indexOf(':') + 1))) &&
      (statusIn([name]) !== undefined || priorityIn([name]) !== undefined)
    );
  };
  return {
    fields: {
      ...(isNew('title') && !keepsTitle && { title: face.title }),
      ...(isNew('description_hash') && !keepsBody && { body: task.description ?? '' }),
      ...(face.status !== agreed.face.status && state !== agreed.issue.state && { state }),
    },
    addLabels: added,
    removeLabels: labels ? agreed.issue.labels.filter(stale) : [],
    face: {
      ...face,
      ...(keepsTitle && { title: agreed.face.title }),
      ...(keepsBody && { description_hash: agreed.face.description_hash }),
    },
    refused: [
      ...(keepsTitle ? [`title: has ${characters} characters, and GitHub takes ${MAX_TITLE}; shorten it`] : []),
      ...(keepsBody ? [`body: ${ISSUE_TEXT_CUT}`] : []),
    ],
  };
}

/**
 * Records the pushed fields as agreed.
 *
 * @param issue as GitHub has it afterwards; undefined: only its labels have changed
 */
export function decidePushed(state: TaskState, push: Push, issue: GithubIssue | undefined): EventDraft[] {
  const { id, task, agreed, source } = state;
  if (id === 0 || !agreed || !source?.github_repo || !source.github_issue_number) return [];
  const face = issue ? faceOfIssue(issue) : agreed.issue;
  const labels = [...new Set([...face.labels.filter((one) => !push.removeLabels.includes(one)), ...push.addLabels])];
  return [
    taskSynced.draft({
      task_id: id,
      title: task.title,
      repo: source.github_repo,
      issue_number: source.github_issue_number,
      issue_updated_at: issue?.updatedAt ?? agreed.issue_updated_at,
      issue: { ...face, labels },
      face: push.face,
      direction: 'push',
      issue_state: face.state,
    }),
  ];
}

/** GitHub still has the repository, but no longer the issue of the task. No event if that is already known. */
export function decideGone({ id, task, agreed, source }: TaskState, repo: string): EventDraft[] {
  const { github_repo: linked, github_issue_number: issueNumber } = source ?? {};
  if (!agreed || agreed.gone || !issueNumber || linked?.toLowerCase() !== repo.toLowerCase()) return [];
  return [taskIssueGone.draft({ task_id: id, title: task.title, repo: linked, issue_number: issueNumber })];
}

/** The issue was closed by hand: the task's metadata records it, and the next sync of its project moves the task. */
export function decideClosed(state: TaskState, repo: string, issue: GithubIssue): EventDraft[] {
  const { id, task, agreed, source } = state;
  if (!agreed || !isLinked(state, repo, issue.number)) return [];
  return [
    taskSynced.draft({
      task_id: id,
      title: task.title,
      repo: source?.github_repo ?? repo,
      issue_number: issue.number,
      issue_updated_at: agreed.issue_updated_at,
      issue: agreed.issue,
      face: agreed.face,
      direction: 'pull',
      issue_state: issue.state,
    }),
  ];
}
