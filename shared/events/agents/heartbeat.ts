/** Heartbeats and wake-ups of agents. Streams: `agent-<workspace>-<id>`; summaries: `liveness-<workspace>`. */
import { z } from 'zod';
import { frontOf } from '../../storable.ts';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';
import { aboutAgent, agentFields } from './agents.ts';

/** @param at Unix milliseconds */
const idleFrame = (data: { agent_id: number; name: string; last_activity: string }, at: number) => ({
  type: 'agent.status_changed' as const,
  data: {
    id: data.agent_id,
    name: data.name,
    status: 'idle',
    last_seen: seconds(at),
    last_activity: data.last_activity,
  },
});

export const agentHeartbeatReceived = defineEvent({
  type: 'AgentHeartbeatReceived',
  doc: 'An agent that was not idle sent a heartbeat, or found other work waiting than before, or every heartbeat is recorded (`general.heartbeat_events`). The agent is now idle.',
  schema: z.object({
    ...agentFields,
    last_activity: z.string(),
    connection_id: z.string().nullable(),
    work_items_count: z.int().nonnegative(),
    work_item_types: z.array(z.string()),
  }),
  self: ({ data }) => data.agent_id,
  activity: ({ data }) => ({
    type: 'agent_heartbeat',
    ...aboutAgent(data.agent_id),
    actor: data.name,
    // Without their number: the search keeps each different text.
    description: `Heartbeat of ${data.name}: ${data.work_items_count === 0 ? 'nothing to do' : data.work_item_types.join(', ').replaceAll('_', ' ')}`,
    data: { workItemsCount: data.work_items_count, workItemTypes: data.work_item_types },
  }),
  frames: ({ data, meta }) => [idleFrame(data, meta.at)],
});

/** Heartbeats of an agent in a window: its id, how many, and the first and the last, in seconds after `from`. */
const summary = z.tuple([z.int().positive(), z.int().positive(), z.int().nonnegative(), z.int().nonnegative()]);

export const heartbeatsReceived = defineEvent({
  type: 'HeartbeatsReceived',
  doc: 'The heartbeats in a window that changed nothing. `part`: a window with many agents has several events.',
  schema: z.object({
    window: z.int().positive(),
    part: z.int().nonnegative(),
    from: z.int().nonnegative(),
    to: z.int().nonnegative(),
    agents: z.array(summary),
    /** Connections that some of them named: agent, connection, and when it was named last, in seconds after `from`. */
    connections: z.array(z.tuple([z.int().positive(), z.string(), z.int().nonnegative()])),
  }),
});

export const heartbeatSummariesRemoved = defineEvent({
  type: 'HeartbeatSummariesRemoved',
  doc: 'Rows of old summaries were removed, because reads go back no further (`MC_RETAIN_HISTORY_DAYS`). The event names them by agent and window, so that every rebuild removes the same ones; the summaries stay in the log.',
  schema: z.object({
    agents: z.array(z.object({ agent_id: z.int().positive(), windows: z.array(z.int().positive()) })),
  }),
});

export const agentWoken = defineEvent({
  type: 'AgentWoken',
  doc: 'A caller asked an agent to check its tasks and notifications. It is now idle.',
  schema: z.object({ ...agentFields, reason: z.string().nullable(), last_activity: z.string() }),
  activity: ({ data }) => ({
    type: 'agent_status_change',
    ...aboutAgent(data.agent_id),
    actor: data.name,
    description: `Agent ${data.name} was woken${data.reason ? `: ${frontOf(data.reason, 200)}` : ''}`,
    data: { status: 'idle', activity: data.last_activity, ...(data.reason !== null && { reason: data.reason }) },
  }),
  frames: ({ data, meta }) => [idleFrame(data, meta.at)],
});
