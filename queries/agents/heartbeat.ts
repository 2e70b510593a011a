/** What waits for an agent: the answer of a heartbeat. One statement, because heartbeats are the most frequent calls. */
import { sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { agentMessagesProjection } from '../../projections/agents/messages.ts';
import { activitiesProjection } from '../../projections/monitoring/activities.ts';
import { notificationsProjection } from '../../projections/monitoring/notifications.ts';
import type { AgentRef } from '../../shared/contract/agents/agents.ts';
import type { AgentMessageRecord } from '../../shared/contract/agents/messages.ts';
import { HOUR } from '../../shared/time.ts';
import type { Reads } from '../reads.ts';
import { TASK_MODELS, tasksOf } from '../tasks.ts';
import { MESSAGE_JSON } from './messages.ts';

type Item = Readonly<Record<string, unknown>>;

export interface WorkItems {
  readonly type: 'assigned_tasks' | 'notifications' | 'urgent_activities';
  readonly count: number;
  readonly items: readonly Item[];
}

export interface Inbox {
  readonly agent: { readonly id: number; readonly name: string };
  readonly workItems: readonly WorkItems[];
  readonly pendingTasks: readonly Item[];
  /** Unread, oldest first, the newest 50. */
  readonly messages: readonly AgentMessageRecord[];
  /** Unix seconds: from then on an urgent activity is too old to stand in it. */
  readonly until: number;
}

/** Read models that an inbox is made from, but for the agent's own record. */
export const INBOX_MODELS = [notificationsProjection.name, agentMessagesProjection.name, ...TASK_MODELS];

/** Activities that are brought to the attention of an agent that they name. All of them are about tasks. */
const URGENT = ['task_created', 'task_assigned', 'high_priority_alert'];
const URGENT_FOR = 4 * HOUR;

/** @param now Unix seconds. Undefined when the workspace has no such agent. */
export async function inboxOf(reads: Reads, workspace: number, ref: AgentRef, now: number): Promise<Inbox | undefined> {
  const table = (projection: Parameters<Reads['schema']>[0], name: string) =>
    sql.table(`${reads.schema(projection)}.${name}`);
  const { rows } = await sql<{
    id: number;
    name: string;
    unread: number;
    notifications: Item[] | null;
    urgent: (Item & { readonly created_at: number })[] | null;
    messages: AgentMessageRecord[] | null;
  }>`
    SELECT a.id, a.name, n.unread, n.notifications, u.urgent, m.messages
    FROM ${table(agentsProjection, 'agents')} a,
    LATERAL (
      SELECT count(*) AS unread, json_agg(json_build_object('id', x.id, 'type', x.type, 'title', x.title,
        'message', x.message, 'created_at', x.created_at) ORDER BY x.position DESC) FILTER (WHERE x.place <= 5) AS notifications
      FROM (
        SELECT *, row_number() OVER (ORDER BY position DESC) AS place
        FROM ${table(notificationsProjection, 'notifications')}
        WHERE workspace_id = a.workspace_id AND recipient = a.name AND read_at IS NULL
      ) x
    ) n,
    LATERAL (
      SELECT json_agg(json_build_object('id', x.id, 'type', x.type, 'description', x.description,
        'created_at', x.created_at) ORDER BY x.position DESC) AS urgent
      FROM (
        SELECT * FROM ${table(activitiesProjection, 'activities')}
        WHERE workspace_id = a.workspace_id AND type IN (${sql.join(URGENT)}) AND created_at > ${now - URGENT_FOR}
          AND strpos(description, a.name) > 0
        ORDER BY position DESC LIMIT 5
      ) x
    ) u,
    LATERAL (
      SELECT json_agg(${MESSAGE_JSON} ORDER BY m.position) AS messages
      FROM (
        SELECT * FROM ${table(agentMessagesProjection, 'messages')}
        WHERE workspace_id = a.workspace_id AND to_agent_id = a.id AND read_at IS NULL
        ORDER BY position DESC LIMIT 50
      ) m
    ) m
    WHERE a.workspace_id = ${workspace} AND ${'id' in ref ? sql`a.id = ${ref.id}` : sql`a.name = ${ref.name}`}`.execute(
    reads.db,
  );
  const row = rows[0];
  if (!row) return undefined;
  const tasks = await tasksOf(reads, workspace, row.name);
  const groups: WorkItems[] = [
    { type: 'assigned_tasks', count: tasks.length, items: tasks.map((task) => task.item) },
    { type: 'notifications', count: Number(row.unread), items: row.notifications ?? [] },
    { type: 'urgent_activities', count: row.urgent?.length ?? 0, items: row.urgent ?? [] },
  ];
  return {
    agent: { id: Number(row.id), name: row.name },
    workItems: groups.filter((group) => group.count > 0),
    pendingTasks: tasks.map((task) => task.record),
    messages: row.messages ?? [],
    until: Math.min(...(row.urgent ?? []).map((activity) => activity.created_at + URGENT_FOR), Number.MAX_SAFE_INTEGER),
  };
}
