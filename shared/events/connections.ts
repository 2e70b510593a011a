/** Connections of command-line tools. They are part of their agent's stream: `agent-<workspace>-<id>`. */
import { z } from 'zod';
import { aboutAgent, agentFields, configOwner } from './agents/agents.ts';
import { defineEvent } from './define.ts';

const connectionFields = { ...agentFields, connection_id: z.uuid() };

export const connectionOpened = defineEvent({
  type: 'ConnectionOpened',
  doc: 'A tool connected as an agent. `replaces`: the agent’s previous connection, which was disconnected.',
  schema: z.object({
    ...connectionFields,
    /** Id of the record. */
    id: z.int().positive(),
    tool_name: z.string(),
    tool_version: z.string().nullable(),
    metadata: z.record(z.string(), z.unknown()).nullable(),
    replaces: z.uuid().nullable(),
    /** Whether the agent was online before, so that no change of status is recorded. */
    already_online: z.boolean(),
  }),
  secrets: { fields: ['metadata'], owner: configOwner },
  self: ({ data }) => data.agent_id,
  activity: ({ data }) => ({
    type: 'connection_created',
    ...aboutAgent(data.agent_id),
    actor: data.name,
    description: `${data.tool_name} connected as ${data.name}`,
  }),
  frames: ({ data }) => [
    ...(data.already_online
      ? [{ type: 'agent.status_changed', data: { id: data.agent_id, name: data.name, status: 'online' } }]
      : []),
    {
      type: 'connection.created',
      data: {
        connection_id: data.connection_id,
        agent_id: data.agent_id,
        agent_name: data.name,
        tool_name: data.tool_name,
      },
    },
  ],
});

export const connectionSeen = defineEvent({
  type: 'ConnectionSeen',
  doc: 'A connection sent a heartbeat.',
  schema: z.object(connectionFields),
});

export const connectionClosed = defineEvent({
  type: 'ConnectionClosed',
  doc: 'A connection ended. `cause`: on request, or because its heartbeats stopped.',
  schema: z.object({ ...connectionFields, cause: z.enum(['request', 'stale']) }),
  activity: ({ data }) => ({
    type: 'connection_disconnected',
    ...aboutAgent(data.agent_id),
    actor: data.cause === 'stale' ? 'heartbeat' : data.name,
    description:
      data.cause === 'stale' ? `The connection of ${data.name} fell silent` : `${data.name} was disconnected`,
  }),
  frames: ({ data }) => [
    {
      type: 'connection.disconnected',
      data: { connection_id: data.connection_id, agent_id: data.agent_id, agent_name: data.name },
    },
  ],
});
