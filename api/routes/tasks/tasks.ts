/** Tasks: list, create, one with its history, delete; and which tasks a caller may touch, and what it sees of them. */
import {
  createTask,
  decideDelete,
  existing,
  type TaskState,
  taskDecider,
  taskStream,
} from '../../../commands/tasks/tasks.ts';
import { historyOf } from '../../../queries/tasks/history.ts';
import { listTasks, TASK_MODELS, taskById } from '../../../queries/tasks/tasks.ts';
import { idParams } from '../../../shared/contract/common.ts';
import { type HistoryEntry, historyAnswer, historyQuery } from '../../../shared/contract/tasks/history.ts';
import {
  createTaskBody,
  type TaskRecord,
  taskAnswer,
  taskDeletedAnswer,
  tasksAnswer,
  tasksQuery,
} from '../../../shared/contract/tasks/tasks.ts';
import { forbidden, notFound } from '../../../shared/errors.ts';
import type { Identity } from '../../../shared/identity.ts';
import { masked } from '../../../shared/secrets.ts';
import { defineRoute, type Route } from '../../http/route.ts';

/**
 * The agent to whose tasks a caller is bound: one that speaks for an agent, and is no admin, sees and touches the tasks
 * of that agent only.
 */
export const agentBound = ({ role, agentName }: Identity): string | undefined =>
  role === 'admin' ? undefined : (agentName ?? undefined);

/** @throws AppError 403 when the caller is bound to an agent that the task is not assigned to */
export function requireTaskAccess(identity: Identity, assignedTo: string | null): void {
  const agent = agentBound(identity);
  if (agent !== undefined && assignedTo !== agent)
    throw forbidden(`You speak for the agent ${agent}, and this task is not assigned to it.`);
}

/** The same as a check for decisions. */
export const taskAccess =
  (identity: Identity) =>
  ({ task }: TaskState): void =>
    requireTaskAccess(identity, task.assignedTo);

/** A task's record as this caller may see it. */
export const taskShownTo = <T extends Pick<TaskRecord, 'metadata'>>({ role }: Identity, task: T): T =>
  role === 'admin' ? task : { ...task, metadata: masked(task.metadata) as T['metadata'] };

/** Callers with the same view get the same tasks. */
export function taskViewOf(identity: Identity): string {
  if (identity.role === 'admin') return 'admin';
  const agent = agentBound(identity);
  return agent === undefined ? 'people' : `agent ${JSON.stringify(agent)}`;
}

/** How the record names its creator. */
export const displayNameOf = ({ displayName, username }: Identity): string => displayName || username || 'system';

export const SECRETS_HIDDEN = 'Secrets in `metadata` are shown as 8 dashes, except to admins.';
export const BOUND = 'A caller that speaks for an agent and is no admin may only ask for tasks of that agent.';

const list = defineRoute({
  method: 'get',
  path: '/api/tasks',
  tag: 'Tasks',
  summary: 'Tasks, newest first',
  description: `${SECRETS_HIDDEN} A caller that speaks for an agent and is no admin sees the tasks of that agent; \`assigned_to\` says nothing then.`,
  access: 'viewer',
  query: tasksQuery,
  responses: { 200: { description: 'A page of tasks', schema: tasksAnswer } },
  cache: { models: TASK_MODELS, scope: 'workspace', per: taskViewOf },
  async handle({ query, identity, services }) {
    const own = agentBound(identity);
    const asked = own === undefined ? query : { ...query, assigned_to: own };
    const { tasks, ...page } = await listTasks(services.reads, identity.workspace, asked);
    return { body: { tasks: tasks.map((task) => taskShownTo(identity, task)), ...page } };
  },
});

const create = defineRoute({
  method: 'post',
  path: '/api/tasks',
  tag: 'Tasks',
  summary: 'Create a task',
  description:
    'A project that is not active, or none, means the general one. The creator, the assignee and everybody whom the description mentions follow the task. Without approval no task is done, a new one neither.',
  access: 'operator',
  limit: 'mutation',
  body: createTaskBody,
  responses: { 201: { description: 'The new task', schema: taskAnswer } },
  async handle({ body, identity, services, command }) {
    const task = await createTask(services.commands, command, services, body, displayNameOf(identity));
    return { status: 201, body: { task: taskShownTo(identity, task) } };
  },
});

const one = defineRoute({
  method: 'get',
  path: '/api/tasks/{id}',
  tag: 'Tasks',
  summary: 'One task',
  description: `With \`include=history\`: what happened to it, newest first, ${'`history_limit`'} events at a time. ${SECRETS_HIDDEN} ${BOUND}`,
  access: 'viewer',
  params: idParams,
  query: historyQuery,
  refuses: [403, 404],
  responses: { 200: { description: 'The task', schema: taskAnswer.extend(historyAnswer.shape) } },
  cache: {
    models: TASK_MODELS,
    scope: 'workspace',
    per: taskViewOf,
    unless: ({ include }) => include !== undefined,
  },
  async handle({ params, query, identity, services }) {
    const task = await taskById(services.reads, identity.workspace, params.id);
    if (!task) throw notFound('Task');
    requireTaskAccess(identity, task.assigned_to);
    const body = { task: taskShownTo(identity, task) };
    if (query.include === undefined) return { body };
    const page = { limit: query.history_limit, before: query.history_before };
    const { history, history_before } = await historyOf(
      services.store,
      taskStream(identity.workspace, params.id),
      page,
    );
    const shown =
      identity.role === 'admin' ? history : history.map((entry) => ({ ...entry, changes: hidden(entry.changes) }));
    return { body: { ...body, history: shown, history_before } };
  },
});

type Changes = HistoryEntry['changes'];

/** Changes without the secrets in them. */
const hidden = ({ metadata, ...others }: Changes): Changes =>
  metadata ? { ...others, metadata: { from: masked(metadata.from), to: masked(metadata.to) } } : others;

const remove = defineRoute({
  method: 'delete',
  path: '/api/tasks/{id}',
  tag: 'Tasks',
  summary: 'Delete a task',
  description: `Its comments, subscriptions and reviews go with it; activities and notifications stay. ${BOUND}`,
  access: 'operator',
  limit: 'mutation',
  params: idParams,
  refuses: [404],
  responses: { 200: { description: 'Deleted', schema: taskDeletedAnswer } },
  async handle({ params, identity, services, command }) {
    const mayTouch = taskAccess(identity);
    const stream = taskStream(identity.workspace, params.id);
    await services.commands.execute(taskDecider, stream, command, (state) => {
      mayTouch(existing(state));
      return decideDelete(state);
    });
    return { body: { success: true } };
  },
});

export const taskRoutes: readonly Route[] = [list, create, one, remove];
