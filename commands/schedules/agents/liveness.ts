/**
 * Sets agents offline that have not reported for too long.
 *
 * The read model names the candidates; the decision is based on each agent's own stream, so that an agent that has just
 * reported is left alone.
 */
import { randomUUID } from 'node:crypto';
import { AppError } from '../../../shared/errors.ts';
import { agentStatusChanged } from '../../../shared/events/agents/agents.ts';
import { livenessChecked } from '../../../shared/events/agents/liveness.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import { MINUTE, seconds } from '../../../shared/time.ts';
import { type AgentState, agentDecider, agentStream, existing } from '../../agents/agents.ts';
import type { Commands } from '../../handler.ts';
import { scheduledContext } from '../../policies/policy.ts';

/** @param since Unix ms; agents whose last sign of life is older are set offline */
export function decideSilence(state: AgentState, since: number): EventDraft[] {
  if (!state.registered || state.deleted || state.status === 'offline' || state.aliveAt >= since) return [];
  return [
    agentStatusChanged.draft({
      ...existing(state),
      from: state.status,
      to: 'offline',
      cause: 'sweep',
      lastActivity: null,
      seen: false,
      announced: false,
    }),
  ];
}

/** An agent that is not offline, according to the read model. */
export interface SilentAgent {
  readonly tenant: number;
  readonly workspace: number;
  readonly id: number;
  readonly name: string;
}

/**
 * Sweeps all workspaces once. @returns the names of the agents that were set offline
 *
 * @param parts.silentAgents finds the agents that are not offline and have not reported after `since`, Unix seconds
 * @param parts.timeoutMinutes how long an agent may be silent
 * @param parts.now Unix ms
 */
export async function sweepLiveness(parts: {
  readonly commands: Commands;
  readonly silentAgents: (since: number) => Promise<readonly SilentAgent[]>;
  readonly timeoutMinutes: number;
  readonly now: () => number;
}): Promise<readonly string[]> {
  const { commands, silentAgents } = parts;
  const since = parts.now() - parts.timeoutMinutes * MINUTE * 1_000;
  const run = randomUUID();
  const silent = await silentAgents(seconds(since));
  const marked = new Map<number, { tenant: number; names: string[] }>();
  for (const { workspace, tenant, id, name } of silent) {
    const { events } = await commands
      .execute(agentDecider, agentStream(workspace, id), scheduledContext(run, tenant, workspace), (state) =>
        decideSilence(state, since),
      )
      .catch((error) => {
        // The agent keeps changing, so it is alive.
        if (error instanceof AppError && error.status === 409) return { events: [] };
        throw error;
      });
    if (events.length === 0) continue;
    const place = marked.get(workspace) ?? { tenant, names: [] };
    place.names.push(name);
    marked.set(workspace, place);
  }
  for (const [workspace, { tenant, names }] of marked) {
    await commands.record(`liveness-${workspace}`, scheduledContext(run, tenant, workspace), [
      livenessChecked.draft({ markedOffline: names, count: names.length }),
    ]);
  }
  return [...marked.values()].flatMap(({ names }) => names);
}
