/** What agents are: registered, changed, hidden, deleted. Streams: `agent-<workspace>-<id>`. */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';
import { about, agent, configOwner, name } from './fields.ts';

const config = z.record(z.string(), z.unknown());

/** What a new agent's own record looks like in the stream and the POST answer, before any task exists. */
const NO_TASKS = { total: 0, assigned: 0, in_progress: 0, quality_review: 0, done: 0, completed: 0 };

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
  secrets: { fields: ['config'], owner: configOwner },
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
        secrets: ['config'],
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
    /** The config as it is, for the frame of an update by id that did not set it. */
    config: config.optional(),
  }),
  secrets: { fields: ['changes.config', 'config'], owner: configOwner },
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
    const { role, lastActivity, config: newConfig = data.config } = data.changes;
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
        secrets: ['config'],
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

export const agentMemoryFieldsSet = defineEvent({
  type: 'AgentMemoryFieldsSet',
  version: 1,
  doc: "The keys that an agent's memory has besides its text were set; all others of them are gone.",
  schema: z.object({
    ...agent,
    fields: z.record(z.string(), z.unknown()),
    /** Characters of the text. */
    size: z.int().nonnegative(),
    append: z.boolean(),
    /** Another event of the same append carries the activity. */
    announced: z.boolean(),
  }),
  secrets: { fields: ['fields'], owner: configOwner },
  activity: ({ data, meta }) =>
    data.announced
      ? undefined
      : {
          type: 'agent_memory_updated',
          ...about(data.agentId),
          actor: data.name,
          description: `Added to the working memory of ${data.name}`,
          data: {
            content_length: data.size,
            append_mode: data.append,
            timestamp: seconds(meta.at),
            saved_to_workspace: false,
          },
        },
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

export const agentEvents = [
  agent,
  agentRegistered,
  agentReturned,
  agentDetailsChanged,
  agentSoulChanged,
  agentMemoryWritten,
  agentMemoryFieldsSet,
  agentMemoryCleared,
  agentHidden,
  agentShown,
  agentDeleted,
  agentsSynced,
];
