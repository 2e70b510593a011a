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
import { counted, EVERY_MINUTE_MS, isOn, type Schedule, type Setting } from '../schedule.ts';

/** @param since Unix ms; agents whose last sign of life is older are set offline */
export function decideSilence(state: AgentState, since: number): EventDraft[] {
  if (!state.registered || state.deleted || state.status === 'offline' || state.aliveAt >= since) return [];
  return [
    agentStatusChanged.draft({
      ...existing(state),
      from: state.status,
      to: 'offline',
      cause: 'sweep',
      last_activity: null,
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

export interface Sweep {
  readonly commands: Commands;
  /** Finds the agents that are not offline and have not reported after `since`, Unix seconds. */
  readonly silentAgents: (since: number) => Promise<readonly SilentAgent[]>;
  /** How long an agent may be silent. */
  readonly timeoutMinutes: number;
  /** Unix ms. */
  readonly now: () => number;
}

/** Checks all workspaces once. @returns the names of the agents that were set offline */
export async function sweepLiveness(parts: Sweep): Promise<readonly string[]> {
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
      if (!asked && now() - startedAt < SWEEP_MS)
        return 'Too soon after the start of the process: agents may still report.';
      const timeoutMinutes = await timeout();
      if (timeoutMinutes === 0) return 'Agents are never set offline: general.agent_timeout_minutes is 0.';
      const marked = await sweepLiveness({ ...parts, timeoutMinutes });
      return `${counted(marked.length, 'agent was', 'agents were')} set offline.`;
    },
  };
}
