/** Changes to the records of agents: status, other fields, visibility, deletion. Streams: `agent-<workspace>-<id>`. */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { type DomainEvent, defineEvent } from '../define.ts';

/** Fields of every event about a single agent. */
export const agentFields = { agent_id: z.int().positive(), name: z.string() };

export const config = z.record(z.string(), z.unknown());

/** The agent as the subject of an activity or an audit entry. */
export const aboutAgent = (id: number) => ({ entity_type: 'agent', entity_id: id });

/** The name of the key that seals the secrets in an agent's config and memory. */
export const configOwner = (data: { readonly agent_id: number }): string => `agent_config:${data.agent_id}`;

/** The status data for the live stream and webhooks. */
const statusOf = ({ data, meta }: Pick<DomainEvent<string, StatusData>, 'data' | 'meta'>) => ({
  id: data.agent_id,
  name: data.name,
  status: data.to,
  ...(data.seen && { last_seen: seconds(meta.at) }),
  last_activity: data.last_activity,
});

interface StatusData {
  readonly agent_id: number;
  readonly name: string;
  readonly to: string;
  readonly seen: boolean;
  readonly last_activity: string | null;
}

export const agentStatusChanged = defineEvent({
  type: 'AgentStatusChanged',
  doc: 'The status of an agent changed. `cause`: an update, a heartbeat, a wake-up, a tool that connected or disconnected, or the liveness sweep.',
  schema: z.object({
    ...agentFields,
    from: z.string(),
    to: z.string(),
    cause: z.enum(['update', 'heartbeat', 'wake', 'connect', 'disconnect', 'sweep']),
    last_activity: z.string().nullable(),
    /** Whether the event counts as a sign of life: it updates `last_seen`. */
    seen: z.boolean(),
    /** Whether another event of the same append sends the frame for this change. */
    announced: z.boolean(),
    /** The current config, for the frame of an update by id. */
    config: z.record(z.string(), z.unknown()).optional(),
  }),
  secrets: { fields: ['config'], owner: configOwner },
  self: ({ data }) => (data.cause === 'heartbeat' || data.cause === 'connect' ? data.agent_id : undefined),
  activity: ({ data }) => ({
    type: 'agent_status_change',
    ...aboutAgent(data.agent_id),
    actor: data.cause === 'sweep' ? 'heartbeat' : data.name,
    description: `Agent ${data.name}: ${data.from} → ${data.to}`,
    data: {
      oldStatus: data.from,
      newStatus: data.to,
      status: data.to,
      ...(data.last_activity !== null && { last_activity: data.last_activity, activity: data.last_activity }),
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
          source_id: data.agent_id,
        }
      : undefined,
  signals: ({ data }) =>
    data.to === 'error' && data.from !== 'error'
      ? [
          {
            agent: data.name,
            kind: 'failed',
            type: 'agent_error',
            description: data.last_activity || `Agent ${data.name}: ${data.from} → ${data.to}`,
            data: { from: data.from },
          },
        ]
      : [],
  // Sent separately if the frame is about an update, or belongs to another event.
  webhooks: (event) =>
    event.data.to === 'error' && (event.data.cause === 'update' || event.data.announced)
      ? [{ type: 'agent.error', data: statusOf(event) }]
      : [],
  frames: (event) => {
    const { data, meta } = event;
    if (data.announced) return [];
    const updated = {
      id: data.agent_id,
      name: data.name,
      status: data.to,
      updated_at: seconds(meta.at),
      ...(data.last_activity !== null && { last_activity: data.last_activity }),
      ...(data.config && { config: data.config }),
    };
    if (data.cause === 'update') return [{ type: 'agent.updated', data: updated, secrets: ['config'] }];
    return [{ type: 'agent.status_changed', data: statusOf(event) }];
  },
});

/** Fields of an agent that callers can change; absent means unchanged. */
const changes = z.object({
  name: z.string().optional(),
  role: z.string().optional(),
  session_key: z.string().nullable().optional(),
  soul_content: z.string().nullable().optional(),
  config: config.optional(),
  last_activity: z.string().optional(),
  runtime_type: z.string().nullable().optional(),
});

export const agentDetailsChanged = defineEvent({
  type: 'AgentDetailsChanged',
  doc: 'Fields of an agent were set. `name` is the old name; a new one is in `changes`.',
  schema: z.object({
    ...agentFields,
    changes,
    /** `name`: PUT /api/agents; `id`: PUT /api/agents/{id}; `sync`: from the gateway configuration. */
    via: z.enum(['name', 'id', 'sync']),
    write_to_gateway: z.boolean(),
    /** Status set by the same call, for the frame. */
    status: z.string().nullable(),
    /** The current config, for the frame of an update by id that did not set the config. */
    config: config.optional(),
  }),
  secrets: { fields: ['changes.config', 'config'], owner: configOwner },
  activity: ({ data }) =>
    data.via === 'id'
      ? {
          type: 'agent_config_updated',
          ...aboutAgent(data.agent_id),
          description: `Updated agent ${data.name}: ${Object.keys(data.changes).join(', ')}`,
          data: { fields: Object.keys(data.changes), write_to_gateway: data.write_to_gateway },
        }
      : undefined,
  // Without a change it is only a sign of life, because agents also report an unchanged status.
  audit: ({ data }) =>
    Object.keys(data.changes).length === 0
      ? undefined
      : {
          action: 'agent_updated',
          target: ['agent', data.agent_id],
          detail: { name: data.name, fields: Object.keys(data.changes), via: data.via },
        },
  frames: (event) => {
    const { data, meta } = event;
    if (data.via === 'sync') return [];
    const { role, last_activity, config: newConfig = data.config } = data.changes;
    return [
      {
        type: 'agent.updated',
        data: {
          id: data.agent_id,
          name: data.changes.name ?? data.name,
          ...(data.status !== null && { status: data.status }),
          ...(last_activity !== undefined && { last_activity }),
          ...(role !== undefined && { role }),
          ...(newConfig !== undefined && { config: newConfig }),
          updated_at: seconds(meta.at),
        },
        secrets: ['config'],
      },
    ];
  },
});

export const agentHidden = defineEvent({
  type: 'AgentHidden',
  doc: 'An agent was hidden from the default list.',
  schema: z.object(agentFields),
});

export const agentShown = defineEvent({
  type: 'AgentShown',
  doc: 'A hidden agent was shown in the default list again.',
  schema: z.object(agentFields),
});

export const agentDeleted = defineEvent({
  type: 'AgentDeleted',
  doc: 'An agent was deleted; its keys stop working. Its past actions stay in the history.',
  schema: z.object({ ...agentFields, role: z.string(), remove_workspace: z.boolean() }),
  activity: ({ data }) => ({
    type: 'agent_deleted',
    ...aboutAgent(data.agent_id),
    description: `Deleted agent ${data.name}`,
    data: { name: data.name, role: data.role, remove_workspace: data.remove_workspace },
  }),
  audit: ({ data }) => ({
    action: 'agent_deleted',
    target: ['agent', data.agent_id],
    detail: { name: data.name, role: data.role },
  }),
  frames: ({ data }) => [{ type: 'agent.deleted', data: { id: data.agent_id, name: data.name } }],
});
