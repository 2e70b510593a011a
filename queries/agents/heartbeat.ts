/**
 * The work that waits for an agent: the response to a heartbeat. Heartbeats are the most frequent calls, and usually
 * nothing changes between two of them, so this is read in one statement and cached until a change that concerns the agent.
 */
import { sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { chatProjection } from '../../projections/chat.ts';
import { activitiesProjection, URGENT } from '../../projections/monitoring/activities.ts';
import { notificationsProjection } from '../../projections/monitoring/notifications.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import type { AgentMessageRecord } from '../../shared/contract/agents/messages.ts';
import type { TaskRecord } from '../../shared/contract/tasks/tasks.ts';
import type { TaskView } from '../../shared/identity.ts';
import type { ConcernedAgent, Freshness, Sources, Stamp, StampFor } from '../../shared/ports/read-models.ts';
import { HOUR, seconds } from '../../shared/time.ts';
import { createKept } from '../kept.ts';
import { nameSince } from '../monitoring/notifications.ts';
import { prepared, type Reads, tableOf } from '../reads.ts';
import { tasksOf, workItemOf } from '../tasks/assignments.ts';
import { activitySeen } from '../tasks/visibility.ts';
import { messageJson, senderNames } from './messages.ts';

type Item = Readonly<Record<string, unknown>>;

export interface WorkItems {
  readonly type: 'assigned_tasks' | 'notifications' | 'urgent_activities';
  readonly count: number;
  readonly items: readonly Item[];
}

export interface Inbox {
  readonly agent: { readonly id: number; readonly name: string };
  readonly workItems: readonly WorkItems[];
  /** Assigned or in progress, most urgent and oldest first, at most 10. */
  readonly pendingTasks: readonly TaskRecord[];
  /** The newest 50 unread messages, oldest first. */
  readonly messages: readonly AgentMessageRecord[];
  /** Unix seconds; from then on, one of the urgent activities is too old to be included. */
  readonly until: number;
}

const [notifications, chat, tasks, projects] = [
  notificationsProjection.name,
  chatProjection.name,
  tasksProjection.name,
  projectsProjection.name,
];

/** What an inbox is built from, but for the names of agents. */
export const INBOX: Sources = {
  tables: [
    { projection: notifications, table: 'notifications' },
    { projection: notifications, table: 'name_owners' },
    { projection: chat, table: 'messages' },
    { projection: tasks, table: 'tasks' },
    { projection: projects, table: 'projects' },
    { projection: activitiesProjection.name, table: 'activities' },
  ],
  // Without activities, which change with nearly every event: those that an agent is shown come with a change of a task.
  models: [notifications, chat, tasks, projects],
};
/** The names of agents, which messages show. Every new agent has one, so only inboxes with messages depend on them. */
export const INBOX_NAMES: Sources = {
  tables: [{ projection: agentsProjection.name, table: 'agents' }],
  models: [agentsProjection.name],
};

const URGENT_FOR = 4 * HOUR;

/**
 * The part of the inbox that the caller may see. The names of agents that sent messages are looked up by a statement of
 * their own, which is not prepared: a plan for few agents took 200 ms for many.
 *
 * @param now Unix seconds
 */
export async function inboxOf(reads: Reads, view: TaskView, { id, name }: Inbox['agent'], now: number): Promise<Inbox> {
  const { rows } = await sql<{
    unread: number;
    notifications: Item[] | null;
    urgent: (Item & { readonly created_at: number })[] | null;
    messages: AgentMessageRecord[] | null;
    by_agents: number[] | null;
    tasks: TaskRecord[] | null;
  }>`${prepared}
    SELECT n.unread, n.notifications, u.urgent, m.messages, m.by_agents, w.tasks
    FROM (SELECT ${view.workspace}::int AS workspace_id, ${id}::bigint AS id, ${name}::text AS name) a,
    LATERAL (
      SELECT count(*) AS unread, json_agg(json_build_object('id', x.id, 'type', x.type, 'title', x.title,
        'message', x.message, 'created_at', x.created_at) ORDER BY x.place) FILTER (WHERE x.place <= 5) AS notifications
      FROM (
        SELECT *, row_number() OVER (ORDER BY created_at DESC, id DESC) AS place
        FROM ${tableOf(reads, notificationsProjection, 'notifications')}
        WHERE workspace_id = a.workspace_id AND recipient = a.name AND owner = 'agent:' || a.id AND read_at IS NULL
      ) x
    ) n,
    LATERAL (
      SELECT json_agg(json_build_object('id', x.id, 'type', x.type, 'description', x.description,
        'created_at', x.created_at) ORDER BY x.created_at DESC, x.position DESC) AS urgent
      FROM (
        SELECT * FROM ${tableOf(reads, activitiesProjection, 'activities')} d
        WHERE workspace_id = a.workspace_id AND type IN (${sql.join(URGENT.map(sql.lit))})
          AND created_at > ${now - URGENT_FOR} AND strpos(description, a.name) > 0 AND ${activitySeen(reads, view, 'd')}
          AND position >= coalesce(${nameSince(reads, view.workspace, sql.ref('a.name'))}, 0)
        -- Not by position alone: the planner would look for five among the newest activities of every type.
        ORDER BY created_at DESC, position DESC LIMIT 5
      ) x
    ) u,
    LATERAL (
      SELECT json_agg(${messageJson(sql.ref('m.from_agent'), sql.ref('a.name'))} ORDER BY m.created_at, m.id) AS messages,
        json_agg(m.id) FILTER (WHERE m.from_agent_id IS NOT NULL) AS by_agents
      FROM (
        SELECT * FROM ${tableOf(reads, chatProjection, 'messages')}
        WHERE workspace_id = a.workspace_id AND to_agent_id = a.id AND read_at IS NULL
        ORDER BY created_at DESC, id DESC LIMIT 50
      ) m
    ) m,
    LATERAL (${tasksOf(reads, 'a')}) w`.execute(reads.db);
  const row = rows[0] as (typeof rows)[number];
  const tasks = row.tasks ?? [];
  const senders = row.by_agents && (await senderNames(reads, view.workspace, row.by_agents));
  const groups: WorkItems[] = [
    { type: 'assigned_tasks', count: tasks.length, items: tasks.map(workItemOf) },
    { type: 'notifications', count: Number(row.unread), items: row.notifications ?? [] },
    { type: 'urgent_activities', count: row.urgent?.length ?? 0, items: row.urgent ?? [] },
  ];
  return {
    agent: { id, name },
    workItems: groups.filter((group) => group.count > 0),
    pendingTasks: tasks,
    messages: (row.messages ?? []).map((one) => ({ ...one, from_agent: senders?.get(one.id) ?? one.from_agent })),
    until: Math.min(...(row.urgent ?? []).map((activity) => activity.created_at + URGENT_FOR), Number.MAX_SAFE_INTEGER),
  };
}

/** Maximum number of characters in all cached inboxes of a process together. */
const KEPT_CHARACTERS = 16_000_000;

/** Inboxes of agents, cached between heartbeats. One cache per process. */
export type Inboxes = ReturnType<typeof createInboxes>;

interface KeptInbox {
  readonly inbox: Inbox;
  /** What the inbox is current for. */
  stamp: Stamp;
  names: Stamp | undefined;
}

/** The agent as rows name it that its inbox or the caller's view depends on. */
const concernedBy = ({ workspace, agent: bound }: TaskView, { id, name }: Inbox['agent']): ConcernedAgent =>
  bound === null || (bound.name === name && bound.id === id)
    ? { workspace, names: [name], ids: [id] }
    : { workspace, names: [name, bound.name], ids: bound.id === null ? [id] : [id, bound.id] };

/** @param parts.now Unix ms */
export function createInboxes(parts: {
  readonly reads: Reads;
  readonly freshness: Pick<Freshness, 'stampFor'>;
  readonly now: () => number;
}) {
  const { reads, freshness } = parts;
  const kept = createKept<KeptInbox>({
    characters: KEPT_CHARACTERS,
    size: ({ inbox }) => JSON.stringify(inbox).length + 200,
  });
  return {
    /** @param since `performance.now()`: a state from any time after this is acceptable */
    async find(view: TaskView, agent: Inbox['agent'], since: number): Promise<Inbox> {
      const own = kept.of(view);
      const name = JSON.stringify([agent.id, agent.name]);
      const concerned = concernedBy(view, agent);
      const earlier = own.get(name);
      // Taken before the read, so a change in between makes the next heartbeat read again.
      const stamp = await freshness.stampFor(concerned, INBOX, { since }, earlier?.stamp);
      const now = seconds(parts.now());
      const isKept = earlier !== undefined && stamp.isCurrent && now < earlier.inbox.until;
      let names: StampFor | undefined;
      if (!isKept || earlier.inbox.messages.length > 0)
        names = await freshness.stampFor(concerned, INBOX_NAMES, { since }, earlier?.names);
      if (isKept && names?.isCurrent !== false) {
        // Later ones need to look at later changes only.
        earlier.stamp = stamp;
        earlier.names = names;
        return earlier.inbox;
      }
      const inbox = await inboxOf(reads, view, agent, now);
      own.set(name, { inbox, stamp, names });
      return inbox;
    },
  };
}
