/** Command-line tools that connect directly, without a gateway. */
import { type ConnectionRooms, connectTool, disconnectTool } from '../../commands/connections.ts';
import { roomFor } from '../../commands/limits.ts';
import { findAgent } from '../../queries/agents/agents.ts';
import { agentOfConnection, countConnected, listConnections } from '../../queries/connections.ts';
import * as contract from '../../shared/contract/connections.ts';
import { orNotFound } from '../../shared/errors.ts';
import { connectionOpened } from '../../shared/events/connections.ts';
import type { Identity } from '../../shared/identity.ts';
import { masked } from '../../shared/secrets.ts';
import { inPieces } from '../../shared/waiting.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { limitsOf, type Services } from '../services.ts';
import { agentRoom } from './agents/agents.ts';

const roomsOf = (services: Services): ConnectionRooms => ({
  agents: agentRoom(services),
  connections: (agentId) =>
    roomFor(
      limitsOf(services, (reads, workspace) => countConnected(reads, workspace, agentId ?? 0)),
      { kind: 'connected tools', most: services.settings.maxConnections, added: connectionOpened },
    ),
});

const connect = defineRoute({
  method: 'post',
  path: '/api/connect',
  summary: 'Connect a command-line tool as an agent',
  description:
    'An agent that does not exist is created. It is online, and has this one connection: an earlier one is disconnected. A connection without heartbeats is disconnected after a while, and its agent goes offline.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'none',
  body: contract.connectBody,
  agents: ({ body }) => ({ name: body.agent_name }),
  responses: { 200: { description: 'Connected', schema: contract.connectResponse } },
  async respond({ body, identity, services, command }) {
    const { agent_name, tool_name } = body;
    const agentIdOf = async (name: string) => (await findAgent(services.reads, identity.workspace, { name }))?.id;
    const { agent_id, connection_id } = await connectTool(services.commands, command, roomsOf(services), agentIdOf, {
      agent_name,
      agentRole: body.agent_role?.trim() || 'cli',
      tool_name,
      tool_version: body.tool_version?.trim() || null,
      metadata: body.metadata ?? null,
    });
    return {
      connection_id,
      agent_id,
      agent_name,
      status: 'connected',
      sse_url: '/api/events',
      heartbeat_url: `/api/agents/${agent_id}/heartbeat`,
      token_report_url: '/api/tokens',
    };
  },
});

const shownTo = ({ seesSecrets }: Identity, connection: contract.ConnectionRecord): contract.ConnectionRecord =>
  seesSecrets
    ? connection
    : { ...connection, metadata: masked(connection.metadata) as contract.ConnectionRecord['metadata'] };

const list = defineRoute({
  method: 'get',
  path: '/api/connect',
  summary: 'Connections, newest first, with those that have ended',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.connectionsQuery,
  responses: { 200: { description: 'A page of connections', schema: contract.connectionsResponse } },
  async respond({ query, identity, services }) {
    const connections = await listConnections(services.reads, identity.workspace, query);
    return { connections: await inPieces(connections, (one) => shownTo(identity, one)) };
  },
});

const disconnect = defineRoute({
  method: 'delete',
  path: '/api/connect',
  summary: 'Disconnect a command-line tool',
  description: 'Its agent goes offline. A connection that has already ended is not changed.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'none',
  body: contract.disconnectBody,
  agents: ({ body, identity, services }) => agentOfConnection(services.reads, identity.workspace, body.connection_id),
  refuses: [404],
  responses: { 200: { description: 'Disconnected', schema: contract.disconnectResponse } },
  async respond({ body, identity, services, command }) {
    const { connection_id } = body;
    const agent = orNotFound(await agentOfConnection(services.reads, identity.workspace, connection_id), 'Connection');
    await disconnectTool(services.commands, command, agent.id, connection_id);
    return { status: 'disconnected', connection_id };
  },
});

export const connectionRoutes: readonly Route[] = [connect, list, disconnect];
