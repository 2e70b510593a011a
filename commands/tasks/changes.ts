/** Changes of tasks: fields of one, and the status of many. */
import { activeCron, recurrenceOf } from '../../shared/contract/tasks/recurrence.ts';
import type { BulkStatus, UpdateTask } from '../../shared/contract/tasks/tasks.ts';
import { AppError, conflict, invalid } from '../../shared/errors.ts';
import { type EventDraft, type EventOf, firstOf } from '../../shared/events/define.ts';
import { taskStatusChanged, taskUpdated } from '../../shared/events/tasks/changes.ts';
import { projectFields, type TaskData, taskRecord } from '../../shared/events/tasks/tasks.ts';
import { atHead } from '../../shared/ports/read-models.ts';
import { restored } from '../../shared/secrets.ts';
import { seconds } from '../../shared/time.ts';
import { arrival, type CommandContext, type Commands } from '../handler.ts';
import { mentionedIn, mentionsIn, readingsOf } from '../mentions.ts';
import { type Ticket, takeTickets } from '../projects/tickets.ts';
import { requireAccess, requireHolder, type TaskCaller } from './access.ts';
import {
  assigneeOf,
  completedAtOf,
  existing,
  fieldsOf,
  moved,
  notice,
  recordOf,
  requireApproval,
  type TaskLookups,
  type TaskState,
  taskDecider,
  taskStream,
  tellAssignee,
  tellMentioned,
} from './tasks.ts';

/** Fields of a request that change a task. */
export type TaskFields = Omit<UpdateTask, 'created_by'>;

export interface TaskChange {
  readonly fields: TaskFields;
  /** Username of the caller. */
  readonly by: string;
  /** The users and agents that the new description mentions. */
  readonly mentioned: readonly string[];
  /** The move to the requested project; undefined: no project was requested, or the task is already in it. */
  readonly move: Move | undefined;
  /** Unix seconds. */
  readonly now: number;
}

/** A move to another project. */
export interface Move {
  /** The ticket in the new project. */
  readonly ticket: Ticket;
  /** Id of the previous project. */
  readonly from: number;
  /** Names of both. */
  readonly names: { readonly from: string; readonly to: string };
}

/** Names of the fields that were sent. */
const sentIn = (fields: TaskFields): string[] =>
  (Object.keys(fields) as (keyof TaskFields)[]).filter((field) => fields[field] !== undefined);

/** Status of a changed task: the requested one; else an assignee moves it out of the inbox, and none moves it back. */
function nextStatus({ status }: TaskData, fields: TaskFields, assignedTo: string | null): string {
  if (fields.status !== undefined) return fields.status;
  if (fields.assigned_to === undefined) return status;
  if (assignedTo !== null && status === 'inbox') return 'assigned';
  return assignedTo === null && status === 'assigned' ? 'inbox' : status;
}

/** Why the description of a task cannot be copied to its issue. */
export const ISSUE_TEXT_CUT =
  'the text of the issue is longer than a description, which shows only its beginning; edit it at GitHub';

/** @throws AppError 409 for a new description whose issue has more text, which would be lost */
function requireWhole({ agreed, task }: TaskState, { description }: TaskFields): void {
  if (description === undefined || description === task.description || !agreed || agreed.gone) return;
  if (agreed.issue.body_cut) throw conflict(`description: ${ISSUE_TEXT_CUT}.`, { code: 'ISSUE_TEXT_CUT' });
}

/** No event when no field was sent. @throws AppError 400, 403, 404; 409 when the task has moved since `move` was prepared */
export function decideUpdate(state: TaskState, { fields, by, mentioned, move, now }: TaskChange): EventDraft[] {
  const { id, task } = existing(state);
  if (sentIn(fields).length === 0) return [];
  if (fields.status === 'done') requireApproval(state);
  const moves = movesTo(fields, task);
  if (moves && move?.from !== task.project_id)
    throw conflict('The project of this task is being changed; try again.', { code: 'BUSY' });
  const next = changed(task, fields, moves ? move?.ticket : undefined, now);
  const updated = updatedFrom(state, task, next, fields, moves ? move?.names : undefined);
  const told = newlyMentioned(mentioned, task.description);
  return [
    updated,
    ...(told.length > 0 ? tellMentioned(taskDecider.evolve(state, { at: now * 1000, ...updated }), told, by) : []),
    ...(next.status !== task.status && task.assigned_to !== null
      ? [statusNotice(id, task.assigned_to, task, next.status)]
      : []),
    ...(next.assigned_to !== task.assigned_to ? tellAssignee(id, next) : []),
  ];
}

const movesTo = ({ project_id: to }: TaskFields, { project_id: projectId }: TaskData): boolean =>
  to !== undefined && to !== projectId;

/** The task as it is after a change. */
function changed(task: TaskData, fields: TaskFields, ticket: Ticket | undefined, now: number): TaskData {
  const assignedTo = fields.assigned_to === undefined ? task.assigned_to : assigneeOf(fields.assigned_to);
  const status = nextStatus(task, fields, assignedTo);
  return {
    ...task,
    completed_at: completedAtOf(task, status, now),
    ...fieldsOf(fields),
    assigned_to: assignedTo,
    status,
    ...ticket,
    ...(fields.metadata && { metadata: restored(fields.metadata, task.metadata, 'metadata') as TaskData['metadata'] }),
  };
}

/** Stops the recurrence of a task. No event for a task that does not recur. */
export function decideStopRecurring(state: TaskState): EventDraft[] {
  const { id, task } = state;
  if (id === 0 || activeCron(task.metadata) === null) return [];
  const metadata = { ...task.metadata, recurrence: { ...recurrenceOf(task.metadata), enabled: false } };
  return [updatedFrom(state, task, { ...task, metadata }, { metadata })];
}

/** The event with the differences. */
function updatedFrom(
  { id, created_at, source }: TaskState,
  task: TaskData,
  next: TaskData,
  fields: TaskFields,
  moved?: Move['names'],
) {
  const different = (Object.keys(next) as (keyof TaskData)[]).filter(
    (field) => next[field] !== task[field] && JSON.stringify(next[field]) !== JSON.stringify(task[field]),
  );
  const reassigned = task.assigned_to !== next.assigned_to || task.assignee_id !== next.assignee_id;
  const { assigned_to, assignee_id } = task;
  return taskUpdated.draft({
    task_id: id,
    created_at,
    task: next,
    given: sentIn(fields),
    changed: different,
    before: {
      ...Object.fromEntries(different.map((field) => [field, task[field]])),
      ...(reassigned && { assigned_to, ...(assignee_id !== undefined && { assignee_id }) }),
    },
    ...(moved && { moved }),
    ...(source && { github: source }),
  });
}

const statusNotice = (id: number, recipient: string, task: TaskData, status: string): EventDraft =>
  notice(id, {
    recipient,
    type: 'status_change',
    title: 'Task status changed',
    message: `The task "${task.title}" went from ${task.status} to ${status}.`,
  });

/** Names that the previous text did not mention. A name is mentioned by itself, with hyphens for blanks. */
function newlyMentioned(names: readonly string[], before: string | null): readonly string[] {
  if (names.length === 0) return names;
  const old = new Set(
    mentionsIn(before ?? '')
      .flatMap(readingsOf)
      .map((one) => one.toLowerCase()),
  );
  if (old.size === 0) return names;
  return names.filter((name) => {
    const handle = name.toLowerCase();
    return !old.has(handle) && !old.has(handle.replace(/\s+/g, '-'));
  });
}

/**
 * Changes a task.
 *
 * @returns its record, and whether nothing had to change
 * @throws AppError 400 for unknown mentions or a project that takes no tasks, 403 without approval, 404; 409 when there
 *   are too many recurring tasks, or others move the task at the same time
 */
export async function updateTask(
  commands: Commands,
  context: CommandContext,
  lookups: TaskLookups,
  id: number,
  change: Pick<TaskChange, 'fields' | 'by' | 'now'>,
  caller: TaskCaller,
) {
  const apply = () => applyChange(commands, context, lookups, id, change, caller);
  if (activeCron(change.fields.metadata ?? {}) === null) return apply();
  const { state } = await commands.load(taskDecider, taskStream(context.origin.workspace, id));
  requireAccess(caller, existing(state));
  return activeCron(state.task.metadata) === null ? lookups.recurring(context, apply) : apply();
}

async function applyChange(
  commands: Commands,
  context: CommandContext,
  lookups: TaskLookups,
  id: number,
  change: Pick<TaskChange, 'fields' | 'by' | 'now'>,
  caller: TaskCaller,
) {
  const { workspace } = context.origin;
  const stream = taskStream(workspace, id);
  const { fields } = change;
  const projectOf = await lookups.taskProjects.at(workspace, arrival(context) ?? atHead());
  let mentioned: readonly string[] = [];
  let move: Move | undefined;
  const mentions = mentionsIn(fields.description ?? '').length > 0;
  if (mentions || fields.project_id !== undefined) {
    const { state } = await commands.load(taskDecider, stream, arrival(context));
    // Check that the task exists and may be changed before reporting errors in its text or project.
    requireAccess(caller, existing(state));
    if (mentions) mentioned = (await mentionedIn(lookups.reads, workspace, fields.description ?? '')).recipients;
    if (movesTo(fields, state.task)) {
      if (fields.status === 'done') requireApproval(state);
      const from = state.task.project_id;
      const { ticket, name } = await ticketIn(commands, workspace, lookups.projects, fields.project_id as number);
      move = { ticket, from, names: { from: (await projectOf(from))?.name ?? '', to: name } };
    }
  }
  let last: TaskState | undefined;
  const executed = await commands.execute(taskDecider, stream, context, (state) => {
    last = existing(state);
    requireAccess(caller, state);
    requireWhole(state, fields);
    return decideUpdate(state, { mentioned, move, ...change });
  });
  const updated = firstOf(executed.events, taskUpdated) as EventOf<typeof taskUpdated> | undefined;
  const record = updated ? recordAfter(updated, workspace) : recordOf(last as TaskState, workspace);
  const project = await projectOf(record.project_id);
  return { task: { ...record, ...projectFields(project, record.project_ticket_no) }, unchanged: !updated };
}

const recordAfter = ({ data, meta }: EventOf<typeof taskUpdated>, workspace: number) =>
  taskRecord(data.task, {
    id: data.task_id,
    workspace,
    created_at: data.created_at,
    updated_at: seconds(meta.at),
    source: data.github,
  });

/** A ticket in a project, and its name. @throws AppError 400 when the project takes no tasks */
async function ticketIn(
  commands: Commands,
  workspace: number,
  projects: TaskLookups['projects'],
  projectId: number,
): Promise<{ readonly ticket: Ticket; readonly name: string }> {
  const project = await projects.find(workspace, projectId);
  if (project?.status !== 'active')
    throw invalid(`There is no active project ${projectId}; send the id of one that GET /api/projects lists.`, [
      'project_id: is not the id of an active project',
    ]);
  const ticketNo = await takeTickets(commands, workspace, projectId);
  return { ticket: { project_id: projectId, project_ticket_no: ticketNo }, name: project.name };
}

/** @throws AppError 403 without approval, 404 */
export function decideStatus(state: TaskState, status: string, now: number): EventDraft[] {
  const { task } = existing(state);
  if (status === 'done') requireApproval(state, true);
  const completed_at = completedAtOf(task, status, now);
  return [taskStatusChanged.draft({ ...moved(state, { status }), cause: 'bulk', completed_at })];
}

const isMissing = (error: unknown): boolean => error instanceof AppError && error.status === 404;

/**
 * Sets the status of several tasks, all or none: approvals are checked before the first task changes. Unknown tasks are
 * skipped. Each task is a stream of its own, so an approval that is withdrawn at that very moment can still refuse one
 * task when others have already changed; the refusal says so.
 *
 * @param now Unix seconds
 * @param check throws when the caller may not change the task
 * @returns how many tasks changed
 * @throws AppError 403 that names the task
 */
export async function setStatuses(
  commands: Commands,
  context: CommandContext,
  items: BulkStatus['tasks'],
  now: number,
  caller: TaskCaller,
): Promise<number> {
  const { workspace } = context.origin;
  const check = caller.kind === 'agent-key' ? requireAccess : requireHolder;
  const toBeDone = new Set(items.filter(({ status }) => status === 'done').map(({ id }) => id));
  await Promise.all(
    [...new Set(items.map(({ id }) => id))].map(async (id) => {
      const { state } = await commands.load(taskDecider, taskStream(workspace, id));
      if (state.id === 0) return;
      check(caller, state);
      if (toBeDone.has(id)) requireApproval(state, true);
    }),
  );
  // If a task appears twice, its last status counts.
  const wanted = new Map(items.map(({ id, status }) => [id, status]));
  const settled = await Promise.allSettled(
    [...wanted].map(([id, status]) =>
      commands.execute(taskDecider, taskStream(workspace, id), context, (state) => {
        if (state.id !== 0) check(caller, state);
        return decideStatus(state, status, now);
      }),
    ),
  );
  const failures = settled.flatMap((one) => (one.status === 'rejected' && !isMissing(one.reason) ? [one.reason] : []));
  const updated = settled.filter(({ status }) => status === 'fulfilled').length;
  const [failure] = failures;
  if (failure === undefined) return updated;
  if (!(failure instanceof AppError) || updated === 0) throw failure;
  const others = `${updated} of the other tasks ${updated === 1 ? 'has' : 'have'} changed already; send the rest again.`;
  throw new AppError(failure.status, `${failure.message} ${others}`, { ...failure.extras, cause: failure });
}
