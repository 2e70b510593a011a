/**
 * Ends connections without recent heartbeats; their agents go offline. The read model names the candidates, the agent's
 * own stream decides.
 */
import { connectionClosed } from '../../shared/events/connections.ts';
import { firstOf } from '../../shared/events/define.ts';
import { newId } from '../../shared/ids.ts';
import type { Leases } from '../../shared/ports/agents/leases.ts';
import { MINUTE, seconds } from '../../shared/time.ts';
import { agentDecider, agentStream } from '../agents/agents.ts';
import { decideStale } from '../connections.ts';
import type { Commands } from '../handler.ts';
import { scheduledContext, unlessBusy } from '../policies/policy.ts';
import { counted, EVERY_MINUTE_MS, type Schedule } from './schedule.ts';

export interface StaleConnection {
  readonly tenant: number;
  readonly workspace: number;
  readonly agent_id: number;
  readonly connection_id: string;
}

export interface StaleSearch {
  readonly commands: Commands;
  readonly leases: Pick<Leases, 'revoke'>;
  /** Finds connections without a heartbeat after `since`, Unix seconds. */
  readonly staleConnections: (since: number) => Promise<readonly StaleConnection[]>;
  /** How long a connection may be silent. */
  readonly timeoutMinutes: number;
  /** Unix ms. */
  readonly now: () => number;
}

/** Checks all workspaces once. @returns the ids of the ended connections */
export async function disconnectStale(parts: StaleSearch): Promise<readonly string[]> {
  const since = parts.now() - parts.timeoutMinutes * MINUTE * 1_000;
  const run = newId();
  const ended: string[] = [];
  for (const stale of await parts.staleConnections(seconds(since))) {
    const { tenant, workspace, agent_id: agentId, connection_id: connectionId } = stale;
    // A heartbeat from now on is an event, which the decision sees, or comes after.
    const beatAt = await parts.leases.revoke({ tenant, workspace, agent: agentId }, seconds(since), connectionId);
    if (beatAt === undefined) continue;
    const context = scheduledContext(run, tenant, workspace);
    // If the agent keeps changing, it is alive.
    const events = await unlessBusy(
      parts.commands.execute(agentDecider, agentStream(workspace, agentId), context, (state) =>
        decideStale(state, since, beatAt * 1_000),
      ),
    );
    const closed = firstOf(events, connectionClosed);
    if (closed) ended.push(closed.data.connection_id);
  }
  return ended;
}

/** @param parts.startedAt when this process was started, Unix ms: until then, no tool could report */
export function connectionsSchedule(parts: StaleSearch & { readonly startedAt: number }): Schedule {
  const { timeoutMinutes, startedAt, now } = parts;
  return {
    id: 'stale_connections',
    kind: 'stale-connections',
    name: 'Disconnect silent tools',
    everyMs: EVERY_MINUTE_MS,
    enabled: async () => timeoutMinutes > 0,
    async run(asked) {
      if (timeoutMinutes === 0) return 'Tools are never disconnected: MC_CONNECTION_TIMEOUT_MINUTES is 0.';
      if (!asked && Math.abs(now() - startedAt) < timeoutMinutes * EVERY_MINUTE_MS)
        return 'Too soon after the start of the process: tools may still report.';
      const ended = await disconnectStale(parts);
      return `${counted(ended.length, 'connection was', 'connections were')} ended.`;
    },
  };
}
