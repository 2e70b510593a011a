/** Command-line tools that connect directly, without a gateway. */
import { connectTool, disconnectTool } from '../../commands/connections.ts';
import { findAgent } from '../../queries/agents/agents.ts';
import { agentOfConnection, listConnections } from '../../queries/connections.ts';
import {
  type ConnectionRecord,
  connectAnswer,
  connectBody,
  connectionsAnswer,
  connectionsQuery,
  disconnectAnswer,
  disconnectBody,
} from '../../shared/contract/connections.ts';
import { forbidden, notFound } from '../../shared/errors.ts';
import type { Identity } from '../../shared/identity.ts';
import { masked } from '../../shared/secrets.ts';
import { defineRoute, type Route } from '../http/route.ts';

/** An agent's key connects and disconnects only that agent. @throws AppError 403 */
function requireOwn(identity: Identity, agentName: string): void {
  if (identity.kind !== 'agent-key' || identity.role === 'admin' || identity.agentName === agentName) return;
  throw forbidden(`This key belongs to the agent ${identity.agentName}; \`agent_name\` must be that name.`);
}

const connect = defineRoute({
  method: 'post',
  path: '/api/connect',
  tag: 'Connections',
  summary: 'Connect a command-line tool as an agent',
  description:
    'An agent that does not exist is created. It is online, and has this one connection: an earlier one is disconnected. A connection without heartbeats is disconnected after a while, and its agent goes offline.',
  access: 'operator',
  body: connectBody,
  responses: { 200: { description: 'Connected', schema: connectAnswer } },
  async handle({ body, identity, services, command }) {
    const { agent_name, tool_name } = body;
    requireOwn(identity, agent_name);
    const agentIdOf = async (name: string) => (await findAgent(services.reads, identity.workspace, { name }))?.id;
    const { agentId, connectionId } = await connectTool(services.commands, command, agentIdOf, {
      agentName: agent_name,
      agentRole: body.agent_role?.trim() || 'cli',
      toolName: tool_name,
      toolVersion: body.tool_version?.trim() || null,
      metadata: body.metadata ?? null,
    });
    return {
      body: {
        connection_id: connectionId,
        agent_id: agentId,
        agent_name,
        status: 'connected',
        sse_url: '/api/events',
        heartbeat_url: `/api/agents/${agentId}/heartbeat`,
        token_report_url: '/api/tokens',
      },
    };
  },
});

const shownTo = ({ role }: Identity, connection: ConnectionRecord): ConnectionRecord =>
  role === 'admin'
    ? connection
    : { ...connection, metadata: masked(connection.metadata) as ConnectionRecord['metadata'] };

const list = defineRoute({
  method: 'get',
  path: '/api/connect',
  tag: 'Connections',
  summary: 'Connections, newest first, with those that have ended',
  access: 'viewer',
  query: connectionsQuery,
  responses: { 200: { description: 'A page of connections', schema: connectionsAnswer } },
  async handle({ query, identity, services }) {
    const connections = await listConnections(services.reads, identity.workspace, query);
    return { body: { connections: connections.map((one) => shownTo(identity, one)) } };
  },
});

const disconnect = defineRoute({
  method: 'delete',
  path: '/api/connect',
  tag: 'Connections',
  summary: 'Disconnect a command-line tool',
  description: 'Its agent goes offline. A connection that has ended already stays as it is.',
  access: 'operator',
  body: disconnectBody,
  refuses: [404],
  responses: { 200: { description: 'Disconnected', schema: disconnectAnswer } },
  async handle({ body, identity, services, command }) {
    const { connection_id } = body;
    const agent = await agentOfConnection(services.reads, identity.workspace, connection_id);
    if (!agent) throw notFound('Connection');
    requireOwn(identity, agent.name);
    await disconnectTool(services.commands, command, agent.id, connection_id);
    return { body: { status: 'disconnected', connection_id } };
  },
});

export const connectionRoutes: readonly Route[] = [connect, list, disconnect];
