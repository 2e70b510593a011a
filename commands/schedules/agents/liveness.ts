/**
 * Sets agents offline that have not reported for too long.
 *
 * The read model names the candidates; the decision is based on each agent's own stream, so that an agent that has just
 * reported is left alone.
 */
import { livenessChecked } from '../../../shared/events/agents/liveness.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import { newId } from '../../../shared/ids.ts';
import type { Leases } from '../../../shared/ports/agents/leases.ts';
import type { RecordPlace } from '../../../shared/ports/read-models.ts';
import { MINUTE, seconds } from '../../../shared/time.ts';
import { type AgentState, agentDecider, agentStream } from '../../agents/agents.ts';
import { livenessStream } from '../../agents/leases.ts';
import { decideStatus } from '../../connections.ts';
import type { Commands } from '../../handler.ts';
import { scheduledContext, unlessBusy } from '../../policies/policy.ts';
import { counted, EVERY_MINUTE_MS, isOn, type Schedule, type Setting } from '../schedule.ts';

/** @param since Unix ms; agents whose last sign of life is older are set offline */
export function decideSilence(state: AgentState, since: number): EventDraft[] {
  if (!state.registered || state.deleted || state.aliveAt >= since) return [];
  return decideStatus(state, 'offline', 'sweep');
}

/** An agent that is not offline, according to the read model. */
export interface SilentAgent extends RecordPlace {
  readonly name: string;
}

export interface Sweep {
  readonly commands: Commands;
  readonly leases: Pick<Leases, 'revoke'>;
  /** Finds the agents that are not offline and have not reported after `since`, Unix seconds. */
  readonly silentAgents: (since: number) => Promise<readonly SilentAgent[]>;
  /** How long an agent may be silent. */
  readonly timeoutMinutes: number;
  /** Unix ms. */
  readonly now: () => number;
}

/** Checks all workspaces once. @returns the names of the agents that were set offline */
export async function sweepLiveness(parts: Sweep): Promise<readonly string[]> {
  const { commands, leases, silentAgents } = parts;
  const since = parts.now() - parts.timeoutMinutes * MINUTE * 1_000;
  const run = newId();
  const silent = await silentAgents(seconds(since));
  const marked = new Map<number, { tenant: number; names: string[] }>();
  for (const { workspace, tenant, id, name } of silent) {
    // A heartbeat from now on is an event, which the decision sees, or comes after.
    if ((await leases.revoke({ tenant, workspace, agent: id }, seconds(since))) === undefined) continue;
    const context = scheduledContext(run, tenant, workspace);
    // If the agent keeps changing, it is alive.
    const events = await unlessBusy(
      commands.execute(agentDecider, agentStream(workspace, id), context, (state) => decideSilence(state, since)),
    );
    if (events.length === 0) continue;
    const place = marked.get(workspace) ?? { tenant, names: [] };
    place.names.push(name);
    marked.set(workspace, place);
  }
  for (const [workspace, { tenant, names }] of marked) {
    await commands.record(livenessStream(workspace), scheduledContext(run, tenant, workspace), [
      livenessChecked.draft({ marked_offline: names, count: names.length }),
    ]);
  }
  return [...marked.values()].flatMap(({ names }) => names);
}

const SWEEP_MS = 5 * EVERY_MINUTE_MS;

/** @param parts.startedAt when this process was started, Unix ms: until then, no agent could report */
export function livenessSchedule(
  parts: Omit<Sweep, 'timeoutMinutes'> & { readonly setting: Setting; readonly startedAt: number },
): Schedule {
  const { setting, startedAt, now } = parts;
  const timeout = async () => Number(await setting('general.agent_timeout_minutes'));
  const on = isOn(setting, 'general.agent_heartbeat');
  return {
    id: 'agent_heartbeat',
    kind: 'liveness-sweep',
    name: 'Set silent agents offline',
    everyMs: SWEEP_MS,
    enabled: async () => (await on()) && (await timeout()) > 0,
    async run(asked) {
      // A sweep that was due while the service was down runs at once, before agents have had a chance to report.
      if (!asked && Math.abs(now() - startedAt) < SWEEP_MS)
        return 'Too soon after the start of the process: agents may still report.';
      const timeoutMinutes = await timeout();
      if (timeoutMinutes === 0) return 'Agents are never set offline: general.agent_timeout_minutes is 0.';
      const marked = await sweepLiveness({ ...parts, timeoutMinutes });
      return `${counted(marked.length, 'agent was', 'agents were')} set offline.`;
    },
  };
}
