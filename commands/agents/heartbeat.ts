/** Heartbeats and wake-ups. */
import type { Inbox, Inboxes } from '../../queries/agents/heartbeat.ts';
import type { EachIsEvent } from '../../queries/agents/leases.ts';
import type { AgentRef } from '../../shared/contract/agents/agents.ts';
import type { PriceSource, TokenCounts } from '../../shared/contract/tokens/costs.ts';
import { AppError, notFound } from '../../shared/errors.ts';
import { agentStatusChanged } from '../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived, agentWoken } from '../../shared/events/agents/heartbeat.ts';
import { connectionSeen } from '../../shared/events/connections.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { tokensReported } from '../../shared/events/tokens/reports.ts';
import { requireSelf, type Speaker, taskViewOf, type Viewer } from '../../shared/identity.ts';
import type { Beat, Leases } from '../../shared/ports/agents/leases.ts';
import { seconds } from '../../shared/time.ts';
import type { Loaded } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { acknowledge } from '../intents.ts';
import { type AgentState, agentDecider, agentStream, existing, waitingOf } from './agents.ts';
import { agentInLog } from './names.ts';

export interface TokenUsage extends TokenCounts {
  /** Of the report. */
  readonly id: string;
  readonly model: string;
  /** Null: none given, or there is no such task. */
  readonly task_id: number | null;
  /** US dollars. */
  readonly cost: number;
  readonly price: PriceSource;
}

export interface Heartbeat {
  readonly connection_id: string | null;
  readonly work_items_count: number;
  readonly work_item_types: readonly string[];
  readonly tokenUsage: TokenUsage | null;
}

/** Whether a heartbeat changes nothing of the agent: then it only renews the agent's lease. */
export const isRoutine = (
  state: AgentState,
  heartbeat: Pick<Heartbeat, 'work_items_count' | 'work_item_types'>,
): boolean =>
  state.registered &&
  !state.deleted &&
  state.status === 'idle' &&
  state.waiting === waitingOf(heartbeat.work_items_count, heartbeat.work_item_types);

/** A sign of life that is an event, after which the agent is idle. @throws AppError 404 */
export function decideHeartbeat(state: AgentState, heartbeat: Heartbeat): EventDraft[] {
  const { agent_id, name } = existing(state);
  const { connection_id, work_items_count, work_item_types: workItemTypes } = heartbeat;
  const lastActivity = 'Heartbeat received';
  const drafts: EventDraft[] = [];
  if (state.status !== 'idle') {
    drafts.push(
      agentStatusChanged.draft({
        agent_id,
        name,
        from: state.status,
        to: 'idle',
        cause: 'heartbeat',
        last_activity: lastActivity,
        seen: true,
        announced: true,
      }),
    );
  }
  drafts.push(
    agentHeartbeatReceived.draft({
      agent_id,
      name,
      last_activity: lastActivity,
      connection_id,
      work_items_count,
      work_item_types: [...workItemTypes],
    }),
  );
  if (connection_id !== null && state.connection?.id === connection_id) {
    drafts.push(connectionSeen.draft({ agent_id, name, connection_id }));
  }
  return [...drafts, ...decideReport(state, heartbeat)];
}

/** The tokens that a heartbeat reports. @throws AppError 404 */
export function decideReport(state: AgentState, { tokenUsage }: Pick<Heartbeat, 'tokenUsage'>): EventDraft[] {
  if (!tokenUsage) return [];
  const { agent_id, name: agent_name } = existing(state);
  const report = {
    ...{ agent_id, agent_name, session_id: `${agent_name}:cli` },
    ...{ operation: 'heartbeat', duration: null, used_at: null },
  };
  return [tokensReported.draft({ page: null, reports: [{ ...report, ...tokenUsage }] })];
}

/** @throws AppError 404 */
export const decideWake = (state: AgentState, reason: string | null): EventDraft[] => [
  agentWoken.draft({ ...existing(state), reason, last_activity: 'Manual wake' }),
];

export interface HeartbeatParts {
  readonly commands: Commands;
  readonly inboxes: Inboxes;
  readonly leases: Pick<Leases, 'renew' | 'grant' | 'seesLog'>;
  readonly eachIsEvent: EachIsEvent;
  /** Unix ms. */
  readonly now: () => number;
}

/** How often an agent is looked up that is renamed each time before its heartbeat is recorded. */
const LOOKS = 10;

/**
 * Records a heartbeat: with events for what it changes, otherwise by a renewal of the agent's lease.
 *
 * @returns the work that waited for the agent: the event records its amount, and the heartbeat does not change it
 * @param caller.arrivedAt when its request arrived, `performance.now()`: work that came later may be missing
 * @throws AppError 403 when the caller may not speak for this agent, 404
 */
export async function recordHeartbeat(
  { commands, inboxes, leases, eachIsEvent, now }: HeartbeatParts,
  context: CommandContext,
  { identity, arrivedAt }: { readonly identity: Speaker & Viewer; readonly arrivedAt: number },
  ref: AgentRef,
  heartbeat: Pick<Heartbeat, 'connection_id' | 'tokenUsage'>,
): Promise<Inbox> {
  const { workspace, tenant } = context.origin;
  const all = await eachIsEvent(arrivedAt);
  for (let look = 1; ; look++) {
    const recent = look === 1;
    const agent = await agentInLog(commands, workspace, ref, recent ? { recent, since: arrivedAt } : {});
    if (!agent) throw notFound('Agent');
    // If another process has renamed or deleted the agent, a refusal counts only after a fresh read.
    let moved = true;
    let renamed = false;
    try {
      requireSelf(identity, agent);
      moved = false;
      const inbox = await inboxes.find(taskViewOf(identity), agent, arrivedAt);
      const found: Heartbeat = {
        connection_id: heartbeat.connection_id,
        tokenUsage: heartbeat.tokenUsage,
        work_items_count: inbox.workItems.reduce((sum, group) => sum + group.count, 0),
        work_item_types: inbox.workItems.map((group) => group.type),
      };
      const place = { tenant, workspace, agent: agent.id };
      const stream = agentStream(workspace, agent.id);
      /** Counts the heartbeat with the agent's lease. */
      const renew = (state: AgentState | undefined, unlessMoved?: Beat['unlessMoved']) => {
        const named = state?.connection?.id === found.connection_id ? found.connection_id : null;
        return leases.renew({ ...place, at: seconds(now()), connection: named, ...(unlessMoved && { unlessMoved }) });
      };
      const renewAsRead = async ({ state, revision }: Loaded<AgentState>) =>
        isRoutine(state, found) && renew(state, { stream, revision });
      // The usual heartbeat: one statement checks that the state is current, and counts. A request that is repeated may
      // have appended an event.
      if (!all && !found.tokenUsage && leases.seesLog && !context.intents?.recorded.length) {
        const loaded = await commands.load(agentDecider, stream, { recent: true });
        if (loaded.state.name === agent.name && (await renewAsRead(loaded))) {
          acknowledge(context, loaded.position);
          return inbox;
        }
      }
      let before: AgentState | undefined;
      const execute = (asEvent: boolean, within: CommandContext) =>
        commands.execute(agentDecider, stream, within, (state) => {
          renamed = !state.deleted && state.name !== agent.name;
          moved = state.deleted || renamed;
          if (moved) throw notFound('Agent');
          before = state;
          return asEvent || !isRoutine(state, found) ? decideHeartbeat(state, found) : decideReport(state, found);
        });
      // Copies, because a second attempt repeats the same step of the request.
      const within = { ...context };
      const { events } = await execute(all, within);
      const isEvent = events.some(({ type }) => type === agentHeartbeatReceived.type);
      // What the log has now: another process may have changed or deleted the agent.
      const renewNow = async () =>
        leases.seesLog ? renewAsRead(await commands.load(agentDecider, stream)) : renew(before);
      const renewed = !isEvent && (await renewNow());
      if (!isEvent && !renewed) {
        // The agent has changed, or the sweep was deciding that it is silent. The event conflicts with that decision, or
        // comes after it.
        if (events.length === 0) await execute(true, { ...context });
        // The report is recorded, whatever has happened to the agent since.
        else
          await commands.execute(agentDecider, stream, within, (state) =>
            state.deleted ? [] : decideHeartbeat(state, { ...found, tokenUsage: null }),
          );
      }
      // Only after the event, so that no decision of the sweep comes in between.
      if ((!isEvent && !renewed) || before?.status === 'offline') await leases.grant(place);
      return inbox;
    } catch (error) {
      const isOver = renamed ? look === LOOKS : !moved || !recent;
      if (isOver || !(error instanceof AppError)) throw error;
    }
  }
}
