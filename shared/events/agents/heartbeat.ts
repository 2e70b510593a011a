/** Heartbeats and wake-ups of agents. Streams: `agent-<workspace>-<id>`. */
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
  doc: 'An agent sent a heartbeat. It is now idle.',
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
    description:
      data.work_items_count === 0
        ? `Heartbeat of ${data.name}: nothing to do`
        : `Heartbeat of ${data.name}: ${data.work_items_count} work items`,
    data: { workItemsCount: data.work_items_count, workItemTypes: data.work_item_types },
  }),
  frames: ({ data, meta }) => [idleFrame(data, meta.at)],
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
