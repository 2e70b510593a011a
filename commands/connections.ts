/**
 * Connections of command-line tools. An agent has at most one connection, so connections are part of its state: one
 * append begins or ends a connection and changes the agent's status.
 */
import { randomUUID } from 'node:crypto';
import { agentStatusChanged } from '../shared/events/agents/agents.ts';
import { connectionClosed, connectionOpened } from '../shared/events/connections.ts';
import { type EventDraft, type EventOf, firstOf } from '../shared/events/define.ts';
import { type AgentState, agentDecider, agentStream, existing } from './agents/agents.ts';
import {
  belongsToAnother,
  onSettledName,
  type Registration,
  registerAgent,
  selfRegistration,
} from './agents/registration.ts';
import type { CommandContext, Commands } from './handler.ts';
import type { Room } from './limits.ts';
import { hasReserved, onRecord } from './record-ids.ts';

type Opened = EventOf<typeof connectionOpened>['data'];
type Tool = Pick<Opened, 'tool_name' | 'tool_version' | 'metadata'>;

/**
 * Sets the agent online, and ends its previous connection.
 *
 * @param connection.isNew whether the agent was created for this connection, online
 * @throws AppError 404
 */
export function decideConnect(
  state: AgentState,
  { isNew, ...connection }: Tool & Pick<Opened, 'id' | 'connection_id'> & { readonly isNew: boolean },
): EventDraft[] {
  const agent = existing(state);
  const opened = connectionOpened.draft({
    ...agent,
    ...connection,
    replaces: state.connection?.id ?? null,
    already_online: state.status === 'online' && !isNew,
  });
  return [...decideStatus(state, 'online', 'connect'), opened];
}

/** A change of status that is no sign of life. No event if the agent has the status. */
export function decideStatus(
  state: AgentState,
  to: 'online' | 'offline',
  cause: 'connect' | 'disconnect' | 'sweep',
): EventDraft[] {
  const { status: from } = state;
  const quiet = { last_activity: null, seen: false, announced: false };
  return from === to ? [] : [agentStatusChanged.draft({ ...existing(state), from, to, cause, ...quiet })];
}

/** No event when the connection has already ended. @throws AppError 404 when the agent is deleted */
export function decideDisconnect(state: AgentState, connectionId: string): EventDraft[] {
  const agent = existing(state);
  if (state.connection?.id !== connectionId) return [];
  return [
    connectionClosed.draft({ ...agent, connection_id: connectionId, cause: 'request' }),
    ...decideStatus(state, 'offline', 'disconnect'),
  ];
}

/**
 * Ends a connection without recent heartbeats. Its agent goes offline, unless it showed another sign of life.
 *
 * @param since Unix ms
 * @param beatAt the agent's last heartbeat according to its lease, Unix ms
 */
export function decideStale(state: AgentState, since: number, beatAt = 0): EventDraft[] {
  const { connection } = state;
  if (!state.registered || state.deleted || !connection || connection.seenAt >= since) return [];
  const closed = connectionClosed.draft({ ...existing(state), connection_id: connection.id, cause: 'stale' });
  return [closed, ...(Math.max(state.aliveAt, beatAt) < since ? decideStatus(state, 'offline', 'sweep') : [])];
}

/** Registration of the agent for a tool that connects under a new name. */
export const toolsRegistration = (name: string, role: string): Registration => ({
  ...selfRegistration({ name, role, framework: null, capabilities: [] }),
  status: 'online',
  via: 'connect',
});

/** Limits of agents and of connected tools in a workspace. */
export interface ConnectionRooms {
  readonly agents: Room;
  /** Does not count this agent's connection, which the new one replaces; undefined: the agent is not created yet. */
  connections(agentId: number | undefined): Room;
}

/**
 * Connects a tool as the agent with this name, which is created if there is none.
 *
 * @param agentIdOf finds the agent that has the name
 * @throws AppError 400 for a name that agents must not have; 409 when the agent keeps being created and deleted, or the
 *   workspace has reached its limit of agents or connected tools
 */
export function connectTool(
  commands: Commands,
  context: CommandContext,
  rooms: ConnectionRooms,
  agentIdOf: (name: string) => Promise<number | undefined>,
  { agent_name: agentName, agentRole, ...tool }: Tool & { readonly agent_name: string; readonly agentRole: string },
): Promise<{ readonly agent_id: number; readonly connection_id: string }> {
  const { workspace } = context.origin;
  return onSettledName(
    async () => {
      const known = hasReserved(context) ? undefined : await agentIdOf(agentName);
      const registration = toolsRegistration(agentName, agentRole);
      const open = async () => {
        const agentId = known ?? (await registerAgent(commands, context, registration, rooms.agents)).id;
        const id = await commands.counters.take('connection');
        const connectionId = randomUUID();
        const stream = agentStream(workspace, agentId);
        const { events } = await commands.execute(agentDecider, stream, context, (state) =>
          decideConnect(state, { ...tool, id, connection_id: connectionId, isNew: known === undefined }),
        );
        // In a repeated request, this is the connection of the first run.
        return {
          agent_id: agentId,
          connection_id: firstOf(events, connectionOpened)?.data.connection_id ?? connectionId,
        };
      };
      return rooms.connections(known)(context, open);
    },
    belongsToAnother(commands, workspace, agentName, agentIdOf),
  );
}

/** Ends a connection of an agent. @throws AppError 404 when the agent is deleted */
export const disconnectTool = onRecord(agentDecider, agentStream, decideDisconnect);
