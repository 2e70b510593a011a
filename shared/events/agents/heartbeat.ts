/** Heartbeats and wake-ups of agents, and the tokens that heartbeats report. Streams: `agent-<workspace>-<id>`. */
import { z } from 'zod';
import { frontOf } from '../../storable.ts';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';
import { aboutAgent, agentFields } from './agents.ts';

/** @param at Unix milliseconds */
const idleFrame = (data: { agentId: number; name: string; lastActivity: string }, at: number) => ({
  type: 'agent.status_changed' as const,
  data: {
    id: data.agentId,
    name: data.name,
    status: 'idle',
    last_seen: seconds(at),
    last_activity: data.lastActivity,
  },
});

export const agentHeartbeatReceived = defineEvent({
  type: 'AgentHeartbeatReceived',
  version: 1,
  doc: 'An agent reported that it is alive. It is now idle.',
  schema: z.object({
    ...agentFields,
    lastActivity: z.string(),
    connectionId: z.string().nullable(),
    workItemsCount: z.int().nonnegative(),
    workItemTypes: z.array(z.string()),
  }),
  self: ({ data }) => data.agentId,
  activity: ({ data }) => ({
    type: 'agent_heartbeat',
    ...aboutAgent(data.agentId),
    actor: data.name,
    description:
      data.workItemsCount === 0
        ? `Heartbeat of ${data.name}: nothing to do`
        : `Heartbeat of ${data.name}: ${data.workItemsCount} work items`,
    data: { workItemsCount: data.workItemsCount, workItemTypes: data.workItemTypes },
  }),
  frames: ({ data, meta }) => [idleFrame(data, meta.at)],
});

export const agentWoken = defineEvent({
  type: 'AgentWoken',
  version: 1,
  doc: 'Somebody asked an agent to check its tasks and notifications. It is now idle.',
  schema: z.object({ ...agentFields, reason: z.string().nullable(), lastActivity: z.string() }),
  activity: ({ data }) => ({
    type: 'agent_status_change',
    ...aboutAgent(data.agentId),
    actor: data.name,
    description: `Agent ${data.name} was woken${data.reason ? `: ${frontOf(data.reason, 200)}` : ''}`,
    data: { status: 'idle', activity: data.lastActivity, ...(data.reason !== null && { reason: data.reason }) },
  }),
  frames: ({ data, meta }) => [idleFrame(data, meta.at)],
});

export const tokenUsageReported = defineEvent({
  type: 'TokenUsageReported',
  version: 1,
  doc: 'Tokens that an agent used, as heartbeats of earlier versions reported them; today they are TokensReported.',
  schema: z.object({
    agentId: z.int().positive(),
    agentName: z.string(),
    sessionId: z.string(),
    model: z.string(),
    inputTokens: z.int().nonnegative(),
    outputTokens: z.int().nonnegative(),
    taskId: z.int().positive().nullable(),
  }),
});

export const agentHeartbeatEvents = [agentHeartbeatReceived, agentWoken, tokenUsageReported];
