/**
 * Ends connections through which no heartbeat has come for too long; their agents go offline. The read model names the
 * candidates, the agent's own stream decides.
 */
import { randomUUID } from 'node:crypto';
import { AppError } from '../../shared/errors.ts';
import { connectionClosed } from '../../shared/events/connections.ts';
import { firstOf } from '../../shared/events/define.ts';
import { MINUTE, seconds } from '../../shared/time.ts';
import { agentDecider, agentStream } from '../agents/agents.ts';
import { decideStale } from '../connections.ts';
import type { Commands } from '../handler.ts';
import { scheduledContext } from '../policies/policy.ts';

export interface StaleConnection {
  readonly tenant: number;
  readonly workspace: number;
  readonly agentId: number;
}

/**
 * Looks through all workspaces once. @returns the ids of the connections that were ended
 *
 * @param parts.staleConnections finds connections without a heartbeat after `since`, Unix seconds
 * @param parts.timeoutMinutes how long a connection may be silent
 * @param parts.now Unix ms
 */
export async function disconnectStale(parts: {
  readonly commands: Commands;
  readonly staleConnections: (since: number) => Promise<readonly StaleConnection[]>;
  readonly timeoutMinutes: number;
  readonly now: () => number;
}): Promise<readonly string[]> {
  const since = parts.now() - parts.timeoutMinutes * MINUTE * 1_000;
  const run = randomUUID();
  const ended: string[] = [];
  for (const { tenant, workspace, agentId } of await parts.staleConnections(seconds(since))) {
    const context = scheduledContext(run, tenant, workspace);
    try {
      const { events } = await parts.commands.execute(agentDecider, agentStream(workspace, agentId), context, (state) =>
        decideStale(state, since),
      );
      const closed = firstOf(events, connectionClosed);
      if (closed) ended.push(closed.data.connectionId);
    } catch (error) {
      // The agent keeps changing, so it is alive.
      if (!(error instanceof AppError) || error.status !== 409) throw error;
    }
  }
  return ended;
}
