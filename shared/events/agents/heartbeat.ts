/** What agents do: status, heartbeats, reports. Streams: `agent-<workspace>-<id>`. */
import { z } from 'zod';
import { frontOf } from '../../storable.ts';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';
import { about, agent, configOwner, name } from './fields.ts';

export const agentStatusChanged = defineEvent({
  type: 'AgentStatusChanged',
  version: 1,
  doc: 'An agent changed its status. `cause`: an update, a heartbeat, a wake-up, a tool that connected or left, or the sweep that found no sign of life.',
  schema: z.object({
    ...agent,
    from: z.string(),
    to: z.string(),
    cause: z.enum(['update', 'heartbeat', 'wake', 'connect', 'disconnect', 'sweep']),
    lastActivity: z.string().nullable(),
    /** The event is a sign of life: `last_seen` moves. */
    seen: z.boolean(),
    /** Another event of the same append carries the frame of this change. */
    announced: z.boolean(),
    /** The config as it is, for the frame of an update by id. */
    config: z.record(z.string(), z.unknown()).optional(),
  }),
  secrets: { fields: ['config'], owner: configOwner },
  activity: ({ data }) => ({
    type: 'agent_status_change',
    ...about(data.agentId),
    actor: data.cause === 'sweep' ? 'heartbeat' : data.name,
    description: `Agent ${data.name}: ${data.from} → ${data.to}`,
    data: {
      oldStatus: data.from,
      newStatus: data.to,
      status: data.to,
      ...(data.lastActivity !== null && { last_activity: data.lastActivity, activity: data.lastActivity }),
    },
  }),
  notification: ({ data }) =>
    data.cause === 'sweep'
      ? {
          recipient: 'system',
          type: 'heartbeat',
          title: `Agent offline: ${data.name}`,
          message: `Agent ${data.name} gave no sign of life and was set offline (it was ${data.from}).`,
          source_type: 'agent',
          source_id: data.agentId,
        }
      : undefined,
  frames: ({ data, meta }) => {
    if (data.announced) return [];
    const updated = {
      id: data.agentId,
      name: data.name,
      status: data.to,
      updated_at: seconds(meta.at),
      ...(data.lastActivity !== null && { last_activity: data.lastActivity }),
      ...(data.config && { config: data.config }),
    };
    if (data.cause === 'update') return [{ type: 'agent.updated', data: updated, secrets: ['config'] }];
    return [
      {
        type: 'agent.status_changed',
        data: {
          id: data.agentId,
          name: data.name,
          status: data.to,
          ...(data.seen && { last_seen: seconds(meta.at) }),
          last_activity: data.lastActivity,
        },
      },
    ];
  },
});

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
  doc: 'An agent reported that it is alive. It is idle from now on.',
  schema: z.object({
    ...agent,
    lastActivity: z.string(),
    connectionId: z.string().nullable(),
    workItemsCount: z.int().nonnegative(),
    workItemTypes: z.array(z.string()),
  }),
  activity: ({ data }) => ({
    type: 'agent_heartbeat',
    ...about(data.agentId),
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
  doc: 'Somebody asked an agent to look at its tasks and notifications. It is idle from now on.',
  schema: z.object({ ...agent, reason: z.string().nullable(), lastActivity: z.string() }),
  activity: ({ data }) => ({
    type: 'agent_status_change',
    ...about(data.agentId),
    actor: data.name,
    description: `Agent ${data.name} was woken${data.reason ? `: ${frontOf(data.reason, 200)}` : ''}`,
    data: { status: 'idle', activity: data.lastActivity, ...(data.reason !== null && { reason: data.reason }) },
  }),
  frames: ({ data, meta }) => [idleFrame(data, meta.at)],
});

export const livenessChecked = defineEvent({
  type: 'LivenessChecked',
  version: 1,
  doc: 'The sweep set agents without a sign of life offline.',
  schema: z.object({ markedOffline: z.array(z.string()), count: z.int() }),
  audit: ({ data }) => ({
    action: 'heartbeat_check',
    actor: 'scheduler',
    detail: { marked_offline: data.markedOffline, marked_offline_count: data.count },
  }),
});

export const adapterReported = defineEvent({
  type: 'AdapterReported',
  version: 1,
  doc: 'A framework adapter (crewai, langgraph, …) passed on what one of its agents did. It changes no record of ours.',
  schema: z.object({
    framework: z.string(),
    action: z.enum(['register', 'heartbeat', 'report', 'disconnect']),
    agentId: z.string(),
    payload: z.record(z.string(), z.unknown()),
  }),
  secrets: { fields: ['payload'], owner: ({ framework }, { workspace }) => `adapter:${workspace}:${framework}` },
  frames: ({ data }) => {
    const { framework, agentId, payload } = data;
    if (data.action === 'register') {
      const { metadata, name: agentName } = payload as { metadata?: Record<string, unknown>; name?: unknown };
      return [
        {
          type: 'agent.created',
          data: { ...metadata, id: agentId, name: agentName, framework, status: 'online' },
          secrets: Object.keys(metadata ?? {}),
        },
      ];
    }
    if (data.action === 'report') {
      const { taskId, progress, status, output } = payload;
      return [
        {
          type: 'task.updated',
          data: { id: taskId, agentId, progress, status, output: output ?? null, framework },
          secrets: ['output'],
        },
      ];
    }
    if (data.action === 'heartbeat') {
      return [
        {
          type: 'agent.status_changed',
          data: { id: agentId, status: payload.status, metrics: payload.metrics ?? {}, framework },
          secrets: ['metrics'],
        },
      ];
    }
    return [{ type: 'agent.status_changed', data: { id: agentId, status: 'offline', framework } }];
  },
});

export const tokenUsageReported = defineEvent({
  type: 'TokenUsageReported',
  version: 1,
  doc: 'Tokens that an agent used, as it reported them.',
  schema: z.object({
    agentId: z.int().positive(),
    agentName: name,
    sessionId: z.string(),
    model: z.string(),
    inputTokens: z.int().nonnegative(),
    outputTokens: z.int().nonnegative(),
    taskId: z.int().positive().nullable(),
  }),
});

export const agentLifeEvents = [
  agentStatusChanged,
  agentHeartbeatReceived,
  agentWoken,
  livenessChecked,
  adapterReported,
  tokenUsageReported,
];
