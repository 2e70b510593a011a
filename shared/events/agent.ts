/** Everything that happens to agents. Streams: `agent-<workspace>-<id>`, and for messages `agent_messages-<workspace>-<recipient id>`. */
import { z } from 'zod';
import { seconds } from '../time.ts';
import { defineEvent } from './define.ts';

const name = z.string();
const agent = { agentId: z.int().positive(), name };
const config = z.record(z.string(), z.unknown());

/** What a new agent's own record looks like in the stream and the POST answer, before any task exists. */
const NO_TASKS = { total: 0, assigned: 0, in_progress: 0, quality_review: 0, done: 0, completed: 0 };

const about = (id: number) => ({ entity_type: 'agent', entity_id: id });

export const agentRegistered = defineEvent({
  type: 'AgentRegistered',
  version: 1,
  doc: 'An agent exists from now on. `via` says how it came: by an operator, by itself, from the gateway configuration.',
  schema: z.object({
    ...agent,
    role: z.string(),
    status: z.string(),
    sessionKey: z.string().nullable(),
    soulContent: z.string().nullable(),
    config,
    template: z.string().nullable(),
    runtimeType: z.string().nullable(),
    /** `source` of the record: manual, local, gateway. */
    source: z.string(),
    via: z.enum(['operator', 'self', 'sync']),
    framework: z.string().nullable(),
    capabilities: z.array(z.string()),
  }),
  activity: ({ data }) =>
    data.via === 'sync'
      ? undefined
      : {
          type: 'agent_created',
          ...about(data.agentId),
          ...(data.via === 'self' && { actor: data.name }),
          description:
            data.via === 'self' ? `Agent ${data.name} registered itself` : `Created agent ${data.name} (${data.role})`,
          data:
            data.via === 'self'
              ? {
                  name: data.name,
                  role: data.role,
                  ...(data.framework && { framework: data.framework }),
                  capabilities: data.capabilities,
                  self_registered: true,
                }
              : {
                  name: data.name,
                  role: data.role,
                  status: data.status,
                  ...(data.sessionKey && { session_key: data.sessionKey }),
                  ...(data.template && { template: data.template }),
                },
        },
  audit: ({ data }) =>
    data.via === 'self'
      ? {
          action: 'agent_self_register',
          target_type: 'agent',
          target_id: data.agentId,
          detail: {
            name: data.name,
            role: data.role,
            ...(data.framework && { framework: data.framework }),
            self_registered: true,
          },
        }
      : {
          action: 'agent_created',
          target_type: 'agent',
          target_id: data.agentId,
          detail: { name: data.name, role: data.role, via: data.via },
        },
  frames: ({ data, meta }) => {
    if (data.via === 'sync') return [];
    if (data.via === 'self')
      return [
        { type: 'agent.created', data: { id: data.agentId, name: data.name, role: data.role, status: data.status } },
      ];
    return [
      {
        type: 'agent.created',
        data: {
          id: data.agentId,
          name: data.name,
          role: data.role,
          session_key: data.sessionKey,
          soul_content: data.soulContent,
          status: data.status,
          last_seen: null,
          last_activity: null,
          created_at: seconds(meta.at),
          updated_at: seconds(meta.at),
          config: data.config,
          working_memory: '',
          source: data.source,
          hidden: 0,
          runtime_type: data.runtimeType,
          taskStats: NO_TASKS,
        },
      },
    ];
  },
});

export const agentReturned = defineEvent({
  type: 'AgentReturned',
  version: 1,
  doc: 'An agent that exists registered itself again: it is idle and has been seen.',
  schema: z.object(agent),
});

/** Fields of an agent that callers can change; absent means unchanged. */
const changes = z.object({
  name: name.optional(),
  role: z.string().optional(),
  sessionKey: z.string().nullable().optional(),
  soulContent: z.string().nullable().optional(),
  config: config.optional(),
  lastActivity: z.string().optional(),
  runtimeType: z.string().nullable().optional(),
});

export const agentDetailsChanged = defineEvent({
  type: 'AgentDetailsChanged',
  version: 1,
  doc: 'Fields of an agent were set. `name` is the name before; a new one is in `changes`.',
  schema: z.object({
    ...agent,
    changes,
    /** `name`: PUT /api/agents; `id`: PUT /api/agents/{id}; `sync`: from the gateway configuration. */
    via: z.enum(['name', 'id', 'sync']),
    writeToGateway: z.boolean(),
    /** Status set by the same call, for the frame. */
    status: z.string().nullable(),
  }),
  activity: ({ data }) =>
    data.via === 'id'
      ? {
          type: 'agent_config_updated',
          ...about(data.agentId),
          description: `Updated agent ${data.name}: ${fieldNames(data.changes).join(', ')}`,
          data: { fields: fieldNames(data.changes), write_to_gateway: data.writeToGateway },
        }
      : undefined,
  // Without a change it is only a sign of life: agents report a status that they have already.
  audit: ({ data }) =>
    Object.keys(data.changes).length === 0
      ? undefined
      : {
          action: 'agent_updated',
          target_type: 'agent',
          target_id: data.agentId,
          detail: { name: data.name, fields: fieldNames(data.changes), via: data.via },
        },
  frames: (event) => {
    const { data, meta } = event;
    if (data.via === 'sync') return [];
    const { role, lastActivity, config: newConfig } = data.changes;
    return [
      {
        type: 'agent.updated',
        data: {
          id: data.agentId,
          name: data.changes.name ?? data.name,
          ...(data.status !== null && { status: data.status }),
          ...(lastActivity !== undefined && { last_activity: lastActivity }),
          ...(role !== undefined && { role }),
          ...(newConfig !== undefined && { config: newConfig }),
          updated_at: seconds(meta.at),
        },
      },
    ];
  },
});

const FIELD_NAMES: Readonly<Record<string, string>> = {
  sessionKey: 'session_key',
  soulContent: 'soul_content',
  lastActivity: 'last_activity',
  runtimeType: 'runtime_type',
};
const fieldNames = (changed: object): string[] => Object.keys(changed).map((field) => FIELD_NAMES[field] ?? field);

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
  }),
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
    };
    if (data.cause === 'update') return [{ type: 'agent.updated', data: updated }];
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
  frames: ({ data, meta }) => [
    {
      type: 'agent.status_changed',
      data: {
        id: data.agentId,
        name: data.name,
        status: 'idle',
        last_seen: seconds(meta.at),
        last_activity: data.lastActivity,
      },
    },
  ],
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
    description: `Agent ${data.name} was woken${data.reason ? `: ${data.reason.slice(0, 200)}` : ''}`,
    data: { status: 'idle', activity: data.lastActivity, ...(data.reason !== null && { reason: data.reason }) },
  }),
  frames: ({ data, meta }) => [
    {
      type: 'agent.status_changed',
      data: {
        id: data.agentId,
        name: data.name,
        status: 'idle',
        last_seen: seconds(meta.at),
        last_activity: data.lastActivity,
      },
    },
  ],
});

export const agentSoulChanged = defineEvent({
  type: 'AgentSoulChanged',
  version: 1,
  doc: "An agent's persona text was replaced.",
  schema: z.object({
    ...agent,
    soulContent: z.string(),
    template: z.string().nullable(),
    previousLength: z.int().nonnegative(),
  }),
  activity: ({ data }) => ({
    type: 'agent_soul_updated',
    ...about(data.agentId),
    description: `Updated the soul of ${data.name}`,
    data: {
      ...(data.template !== null && { template_used: data.template }),
      content_length: data.soulContent.length,
      previous_content_length: data.previousLength,
      saved_to_workspace: false,
    },
  }),
});

export const agentMemoryWritten = defineEvent({
  type: 'AgentMemoryWritten',
  version: 1,
  doc: "An agent's working memory was replaced, or text was added to its end.",
  schema: z.object({
    ...agent,
    /** The whole memory, or what is added to it (separator and heading included). */
    text: z.string(),
    append: z.boolean(),
    /** Characters of the whole memory afterwards. */
    size: z.int().nonnegative(),
  }),
  activity: ({ data, meta }) => ({
    type: 'agent_memory_updated',
    ...about(data.agentId),
    actor: data.name,
    description: `${data.append ? 'Added to' : 'Replaced'} the working memory of ${data.name}`,
    data: {
      content_length: data.size,
      append_mode: data.append,
      timestamp: seconds(meta.at),
      saved_to_workspace: false,
    },
  }),
});

export const agentMemoryCleared = defineEvent({
  type: 'AgentMemoryCleared',
  version: 1,
  doc: "An agent's working memory was emptied.",
  schema: z.object(agent),
  activity: ({ data, meta }) => ({
    type: 'agent_memory_cleared',
    ...about(data.agentId),
    actor: data.name,
    description: `Cleared the working memory of ${data.name}`,
    data: { timestamp: seconds(meta.at) },
  }),
});

export const agentHidden = defineEvent({
  type: 'AgentHidden',
  version: 1,
  doc: 'An agent no longer stands in the default list.',
  schema: z.object(agent),
});

export const agentShown = defineEvent({
  type: 'AgentShown',
  version: 1,
  doc: 'A hidden agent stands in the default list again.',
  schema: z.object(agent),
});

export const agentDeleted = defineEvent({
  type: 'AgentDeleted',
  version: 1,
  doc: 'An agent is gone; its keys stop working. What it did stays in the history.',
  schema: z.object({ ...agent, role: z.string(), removeWorkspace: z.boolean() }),
  activity: ({ data }) => ({
    type: 'agent_deleted',
    ...about(data.agentId),
    description: `Deleted agent ${data.name}`,
    data: { name: data.name, role: data.role, remove_workspace: data.removeWorkspace },
  }),
  audit: ({ data }) => ({
    action: 'agent_deleted',
    target_type: 'agent',
    target_id: data.agentId,
    detail: { name: data.name, role: data.role },
  }),
  frames: ({ data }) => [{ type: 'agent.deleted', data: { id: data.agentId, name: data.name } }],
});

export const agentKeyIssued = defineEvent({
  type: 'AgentKeyIssued',
  version: 1,
  doc: 'An API key of an agent. The key itself is nowhere but with its owner; its hash is in the credential store.',
  schema: z.object({
    keyId: z.int().positive(),
    agentId: z.int().positive(),
    agentName: name,
    /** Name of the key. */
    name: z.string(),
    prefix: z.string(),
    scopes: z.array(z.string()),
    createdBy: z.string(),
    /** Unix seconds; null: never. */
    expiresAt: z.int().nullable(),
  }),
  audit: ({ data }) => ({
    action: 'agent_key_issued',
    target_type: 'agent',
    target_id: data.agentId,
    detail: {
      key_id: data.keyId,
      name: data.name,
      key_prefix: data.prefix,
      scopes: data.scopes,
      expires_at: data.expiresAt,
    },
  }),
});

export const agentKeyRevoked = defineEvent({
  type: 'AgentKeyRevoked',
  version: 1,
  doc: 'An API key of an agent works no longer, for good.',
  schema: z.object({ keyId: z.int().positive(), agentId: z.int().positive(), agentName: name }),
  audit: ({ data }) => ({
    action: 'agent_key_revoked',
    target_type: 'agent',
    target_id: data.agentId,
    detail: { key_id: data.keyId },
  }),
});

export const agentMessageSent = defineEvent({
  type: 'AgentMessageSent',
  version: 1,
  doc: 'A message from one agent (or person) to an agent.',
  schema: z.object({
    messageId: z.int().positive(),
    from: z.string(),
    to: z.string(),
    toAgentId: z.int().positive(),
    content: z.string(),
    messageType: z.string(),
    /** Kinds of credentials that the text seems to hold; never the text found. */
    secrets: z.object({ count: z.int().nonnegative(), types: z.array(z.string()) }),
  }),
  activity: ({ data }) => ({
    type: 'agent_message',
    ...about(data.toAgentId),
    actor: data.from,
    description: `${data.from} wrote to ${data.to}`,
    data: { to: data.to },
  }),
  notification: ({ data }) => ({
    recipient: data.to,
    type: 'message',
    title: `Message from ${data.from}`,
    message: `${data.from}: ${data.content.slice(0, 200)}`,
    source_type: 'agent',
    source_id: data.toAgentId,
  }),
  frames: (event) => {
    const { data, meta } = event;
    const frames = [
      {
        type: 'chat.message',
        data: {
          id: data.messageId,
          conversation_id: conversationOf(data),
          from_agent: data.from,
          to_agent: data.to,
          content: data.content,
          message_type: data.messageType,
          metadata: null as unknown,
          read_at: null as unknown,
          created_at: seconds(meta.at),
        },
      },
    ] as { type: string; data: Record<string, unknown> }[];
    if (data.secrets.count > 0) {
      frames.push({
        type: 'security.event',
        data: {
          id: meta.number,
          event_type: 'secret_exposure',
          severity: 'critical',
          source: 'agent_message',
          agent_name: data.from,
          detail: JSON.stringify(data.secrets),
          tenant_id: meta.tenant,
          timestamp: seconds(meta.at),
        },
      });
    }
    return frames;
  },
  audit: ({ data }) =>
    data.secrets.count > 0
      ? {
          action: 'secret_exposure',
          actor: data.from,
          target_type: 'agent',
          target_id: data.toAgentId,
          detail: { ...data.secrets },
        }
      : undefined,
});

/** Text key of the conversation between two agents; the same both ways. */
export const conversationOf = (data: { readonly from: string; readonly to: string }): string =>
  `a2a:${[data.from, data.to].sort().join(':')}`;

export const agentsSynced = defineEvent({
  type: 'AgentsSynced',
  version: 1,
  doc: 'Agents were imported from the gateway configuration.',
  schema: z.object({
    synced: z.int(),
    created: z.int(),
    updated: z.int(),
    agents: z.array(z.string()),
  }),
  audit: ({ data }) => ({ action: 'agent_config_sync', detail: { ...data } }),
  frames: ({ data }) => [
    {
      type: 'agent.created',
      data: { type: 'sync', synced: data.synced, created: data.created, updated: data.updated },
    },
  ],
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
  frames: ({ data }) => {
    const { framework, agentId, payload } = data;
    if (data.action === 'register') {
      const { metadata, name: agentName } = payload as { metadata?: Record<string, unknown>; name?: unknown };
      return [
        { type: 'agent.created', data: { ...metadata, id: agentId, name: agentName, framework, status: 'online' } },
      ];
    }
    if (data.action === 'report') {
      const { taskId, progress, status, output } = payload;
      return [
        { type: 'task.updated', data: { id: taskId, agentId, progress, status, output: output ?? null, framework } },
      ];
    }
    if (data.action === 'heartbeat') {
      return [
        {
          type: 'agent.status_changed',
          data: { id: agentId, status: payload.status, metrics: payload.metrics ?? {}, framework },
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

export const agentEvents = [
  agentRegistered,
  agentReturned,
  agentDetailsChanged,
  agentStatusChanged,
  agentHeartbeatReceived,
  agentWoken,
  agentSoulChanged,
  agentMemoryWritten,
  agentMemoryCleared,
  agentHidden,
  agentShown,
  agentDeleted,
  agentKeyIssued,
  agentKeyRevoked,
  agentMessageSent,
  agentsSynced,
  livenessChecked,
  adapterReported,
  tokenUsageReported,
];
