/**
 * What an agent's key sees: which tasks a caller may see, as SQL conditions; the rule itself is `seesTask`. A record about
 * a task, such as an activity, is visible to callers who may see the task.
 */
import { type RawBuilder, sql } from 'kysely';
import { chatProjection } from '../../projections/chat.ts';
import { notificationsProjection } from '../../projections/monitoring/notifications.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { forbidden } from '../../shared/errors.ts';
import { NOTIFIER } from '../../shared/events/monitoring/notifications.ts';
import type { TaskView } from '../../shared/identity.ts';
import { ASSIGNEE, waysToRefer } from '../agents/names.ts';
import { type Reads, tableOf } from '../reads.ts';

type Condition = RawBuilder<boolean>;

const EVERYTHING: Condition = sql<boolean>`true`;

/**
 * The reasons for which an agent may see a task, as conditions that each have an index.
 *
 * @param row alias of a row of `tasks`
 */
function waysToSee({ name, id }: NonNullable<TaskView['agent']>, row: string): readonly Condition[] {
  const column = (of: string) => sql.ref(`${row}.${of}`);
  if (id === null) return [sql<boolean>`${column('assigned_to')} = ${name}`];
  return [...waysToRefer(row, ASSIGNEE, { id, name }), sql<boolean>`${column('creator_agent')} = ${id}`];
}

/** @param row alias of a row of `tasks` */
export const taskSeen = ({ agent }: TaskView, row: string): Condition =>
  agent === null ? EVERYTHING : sql<boolean>`(${sql.join(waysToSee(agent, row), sql` OR `)})`;

const tasksTable = (reads: Reads) => tableOf(reads, tasksProjection, 'tasks');

/**
 * Whether the caller may see the task with this id. PostgreSQL builds one table of the ids that a bound caller may see,
 * however many rows are compared. One SELECT per reason, because then the indexes alone give the ids.
 */
export function taskIdSeen(reads: Reads, view: TaskView, id: RawBuilder<unknown>): Condition {
  const { workspace, agent } = view;
  if (agent === null) return EVERYTHING;
  const ids = waysToSee(agent, 'seen').map(
    (way) => sql`SELECT seen.id FROM ${tasksTable(reads)} seen WHERE seen.workspace_id = ${workspace} AND ${way}`,
  );
  return sql<boolean>`${id} IN (${sql.join(ids, sql` UNION ALL `)})`;
}

/**
 * Whether the caller may see an activity: one about a task or a comment is visible with the task, one about a
 * notification to its recipient. Activities about deleted tasks are visible to callers who may see all tasks.
 *
 * @param row alias of a row of `activities`
 */
export function activitySeen(reads: Reads, view: TaskView, row: string): Condition {
  const { workspace, agent } = view;
  if (agent === null) return EVERYTHING;
  const column = (name: string) => sql.ref(`${row}.${name}`);
  return sql<boolean>`CASE ${column('entity_type')}
    WHEN 'task' THEN ${column('entity_id')} = 0 OR ${taskIdSeen(reads, view, column('entity_id'))}
    WHEN 'comment' THEN ${taskIdSeen(reads, view, sql`(${column('data')}->>'task_id')::bigint`)}
    WHEN 'notification' THEN EXISTS (
      SELECT FROM ${tableOf(reads, notificationsProjection, 'notifications')} told
      WHERE told.workspace_id = ${workspace} AND told.id = ${column('entity_id')} AND ${notificationSeen(view, 'told')})
    ELSE true END`;
}

/**
 * Whether the caller may see a notification, which is about tasks: its recipient may.
 *
 * @param row alias of a row of `notifications`
 */
export const notificationSeen = ({ agent }: TaskView, row: string): Condition =>
  agent === null
    ? EVERYTHING
    : agent.id === null
      ? sql<boolean>`${sql.ref(`${row}.recipient`)} = ${agent.name}`
      : sql<boolean>`(${sql.ref(`${row}.recipient`)} = ${agent.name} AND ${sql.ref(`${row}.owner`)} = ${`agent:${agent.id}`})`;

/**
 * Whether the caller may see a message: a notification is about tasks, so one delivered to an agent is visible to that
 * agent.
 *
 * @param row alias of a row of `messages`
 */
export function messageSeen({ agent }: TaskView, row: string): Condition {
  if (agent === null) return EVERYTHING;
  const own =
    agent.id === null
      ? sql`${sql.ref(`${row}.to_agent`)} = ${agent.name}`
      : sql`${sql.ref(`${row}.to_agent_id`)} = ${agent.id}`;
  return sql<boolean>`(${sql.ref(`${row}.from_agent`)} <> ${NOTIFIER} OR ${own})`;
}

/**
 * Whether the caller may see a conversation: one between the notifier and an agent is visible to that agent.
 *
 * @param row alias of a row of `conversations`
 */
export function conversationSeen(reads: Reads, view: TaskView, row: string): Condition {
  const { workspace, agent } = view;
  if (agent === null) return EVERYTHING;
  const has = (participant: Condition) => sql`EXISTS (
    SELECT FROM ${tableOf(reads, chatProjection, 'participants')} within WHERE within.workspace_id = ${workspace}
      AND within.conversation = ${sql.ref(`${row}.conversation`)} AND ${participant})`;
  const named = (name: string) => sql<boolean>`within.name = ${name}`;
  const own = agent.id === null ? named(agent.name) : sql<boolean>`within.inbox_id = ${agent.id}`;
  return sql<boolean>`(NOT starts_with(${sql.ref(`${row}.conversation`)}, 'a2a:') OR NOT ${has(named(NOTIFIER))} OR ${has(own)})`;
}

/**
 * Refuses a caller that may not see a task; an unknown task is not refused, because it has no data to see.
 *
 * @throws AppError 403
 */
export async function requireSeen(reads: Reads, view: TaskView, id: number): Promise<void> {
  if (view.agent === null) return;
  const { rows } = await sql<{ seen: boolean | null }>`
    SELECT ${taskSeen(view, 't')} AS seen FROM ${tasksTable(reads)} t
    WHERE t.workspace_id = ${view.workspace} AND t.id = ${id}`.execute(reads.db);
  if (rows[0] && rows[0].seen !== true) throw unseen(view);
}

export const unseen = ({ agent }: TaskView) =>
  forbidden(`You speak for the agent ${agent?.name}, and this task is neither assigned to it nor created by it.`);
