/** Tasks: list, create, show with history, delete; and which tasks a caller may change, and what it sees of them. */

import { roomFor } from '../../../commands/limits.ts';
import { requireAccess } from '../../../commands/tasks/access.ts';
import {
  createTask,
  decideDelete,
  existing,
  type TaskLookups,
  taskDecider,
  taskStream,
} from '../../../commands/tasks/tasks.ts';
import { withDisplayNames } from '../../../queries/names.ts';
import { historyOf } from '../../../queries/tasks/history.ts';
import { countRecurring } from '../../../queries/tasks/recurrence.ts';
import { LISTED_TASK_MODELS, listTasks, TASK_MODELS, taskById } from '../../../queries/tasks/tasks.ts';
import { idParams } from '../../../shared/contract/common.ts';
import { type HistoryEntry, historyQuery, historyResponse } from '../../../shared/contract/tasks/history.ts';
import * as contract from '../../../shared/contract/tasks/tasks.ts';
import { orNotFound } from '../../../shared/errors.ts';
import { taskCreated } from '../../../shared/events/tasks/tasks.ts';
import { authorOf, type Identity, TASK_VIEW, taskViewOf } from '../../../shared/identity.ts';
import { masked } from '../../../shared/secrets.ts';
import { inPieces } from '../../../shared/waiting.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import { limitsOf, type Services } from '../../services.ts';

/**
 * The agent to whose tasks a caller is limited: a caller that speaks for an agent, and is no admin, may change only the
 * tasks assigned to that agent. Its view decides which tasks it sees (`taskViewOf`).
 */
export const agentBound = (identity: Identity): string | undefined => taskViewOf(identity).agent?.name;

/** A task's record as this caller may see it. */
export const taskShownTo = <T extends Pick<contract.TaskRecord, 'metadata'>>(
  { seesSecrets }: Pick<Identity, 'seesSecrets'>,
  task: T,
): T => (seesSecrets ? task : { ...task, metadata: masked(task.metadata) as T['metadata'] });

/** Tasks as this caller may see them, with the display names of their creators. */
export async function tasksShownTo<T extends Pick<contract.TaskRecord, 'metadata' | 'created_by' | 'created_at'>>(
  { displayNames }: Pick<Services, 'displayNames'>,
  identity: Pick<Identity, 'seesSecrets' | 'workspace'>,
  tasks: readonly T[],
): Promise<T[]> {
  const named = await withDisplayNames(displayNames, identity.workspace, tasks, ['created_by']);
  return inPieces(named, (task) => taskShownTo(identity, task));
}

/** The same of one. */
export const oneShownTo = async <T extends Pick<contract.TaskRecord, 'metadata' | 'created_by' | 'created_at'>>(
  services: Pick<Services, 'displayNames'>,
  identity: Pick<Identity, 'seesSecrets' | 'workspace'>,
  task: T,
): Promise<T> => (await tasksShownTo(services, identity, [task]))[0] as T;

export const SECRETS_HIDDEN = 'Secrets in `metadata` are shown as 8 dashes, except to admins.';
export const BOUND =
  'A caller that speaks for an agent and is no admin may only change tasks that are assigned to that agent.';
export const HELD =
  'While a task is in progress, a caller that names another agent than its assignee in `x-agent-name` gets 409.';
export const SEEN =
  'A caller that speaks for an agent and is no admin sees the tasks that are assigned to that agent, and with the key of the agent those that it created.';

const withoutAssignee = (query: contract.TasksQuery): contract.TasksQuery => ({ ...query, assigned_to: undefined });

const list = defineCachedRoute({
  method: 'get',
  path: '/api/tasks',
  summary: 'Tasks, newest first',
  mcp: { tool: 'list_tasks' },
  description: `${SECRETS_HIDDEN} ${SEEN} Its \`assigned_to\` counts if it names that agent.`,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.tasksQuery,
  responses: { 200: { description: 'A page of tasks', schema: contract.tasksResponse } },
  cache: { models: LISTED_TASK_MODELS, caller: [...TASK_VIEW, 'seesSecrets'] },
  async respond({ query, identity, services }) {
    const view = taskViewOf(identity);
    const asked = view.agent === null || query.assigned_to === view.agent.name ? query : withoutAssignee(query);
    const { tasks, ...page } = await listTasks(services.reads, view, asked);
    return { tasks: await tasksShownTo(services, identity, tasks), ...page };
  },
});

/** The lookups of commands about tasks. */
export const lookupsOf = (services: Services): TaskLookups => ({
  projects: services.projects,
  taskProjects: services.taskProjects,
  reads: services.reads,
  recurring: roomFor(limitsOf(services, countRecurring), {
    kind: 'recurring tasks',
    most: services.settings.maxRecurringTasks,
    added: taskCreated,
  }),
});

const create = defineRoute({
  method: 'post',
  path: '/api/tasks',
  summary: 'Create a task',
  mcp: { tool: 'create_task' },
  description:
    'If the project is omitted or not active, the general one is used. The creator, the assignee and all who are mentioned in the description follow the task. A task is done only after an approval, a new one too.',
  access: 'operator',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'screened' },
  body: contract.createTaskBody,
  responses: { 201: { description: 'The new task', schema: contract.taskResponse } },
  async respond({ body, identity, services, command }) {
    const task = await createTask(services.commands, command, lookupsOf(services), body, authorOf(identity));
    return { task: await oneShownTo(services, identity, task) };
  },
});

const one = defineCachedRoute({
  method: 'get',
  path: '/api/tasks/{id}',
  summary: 'One task',
  mcp: { tool: 'get_task', resource: 'task://{id}' },
  description: `With \`include=history\`: what happened to it, newest first, ${'`history_limit`'} events or 4 MB at a time. ${SECRETS_HIDDEN} ${SEEN}`,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: idParams,
  query: historyQuery,
  refuses: [403, 404],
  responses: { 200: { description: 'The task', schema: contract.taskResponse.extend(historyResponse.shape) } },
  cache: {
    models: TASK_MODELS,
    caller: [...TASK_VIEW, 'seesSecrets'],
    unless: ({ include }) => include !== undefined,
  },
  async respond({ params, query, identity, services }) {
    const task = orNotFound(await taskById(services.reads, taskViewOf(identity), params.id), 'Task');
    const body = { task: await oneShownTo(services, identity, task) };
    if (query.include === undefined) return body;
    const page = { limit: query.history_limit, before: query.history_before, bytes: services.pageBytes };
    const { history, history_before } = await historyOf(
      services.store,
      taskStream(identity.workspace, params.id),
      page,
      services.reads.past,
    );
    const shownAs = await services.displayNames.of(
      identity.workspace,
      history.map(({ actor }) => actor),
    );
    const named = history.map((entry) =>
      WRITTEN.has(entry.type) ? { ...entry, actor: shownAs(entry.actor, entry.at) } : entry,
    );
    const shown = await inPieces(named, (entry) => ({ ...entry, changes: hidden(entry.changes) }));
    return { ...body, history: shown, history_before };
  },
});

/** Entries about what was written, by whom. */
const WRITTEN: ReadonlySet<string> = new Set(['TaskCreated', 'TaskCommented', 'TaskBroadcast', 'TaskAssigned']);

type Changes = HistoryEntry['changes'];

/** Changes without the secrets in them. */
const hidden = ({ metadata, ...others }: Changes): Changes =>
  metadata ? { ...others, metadata: { from: masked(metadata.from), to: masked(metadata.to) } } : others;

const remove = defineRoute({
  method: 'delete',
  path: '/api/tasks/{id}',
  summary: 'Delete a task',
  description: `Its comments, subscriptions and reviews go with it; activities and notifications stay. ${BOUND} ${HELD}`,
  access: 'operator',
  rules: { agentKeys: 'tasks', strict: 'allowed', past: 'none', prompts: 'none' },
  params: idParams,
  refuses: [404, 409],
  responses: { 200: { description: 'Deleted', schema: contract.taskDeletedResponse } },
  async respond({ params, identity, services, command }) {
    const stream = taskStream(identity.workspace, params.id);
    await services.commands.execute(taskDecider, stream, command, (state) => {
      requireAccess(identity, existing(state));
      return decideDelete(state);
    });
    return { success: true };
  },
});

export const taskRoutes: readonly Route[] = [list, create, one, remove];
