/** Heartbeats and wake-ups. */
import { agentStatusChanged } from '../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived, agentWoken, tokenUsageReported } from '../../shared/events/agents/heartbeat.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { type AgentState, existing } from './agents.ts';

export interface TokenUsage {
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** null: none given, or no such task. */
  readonly taskId: number | null;
}

export interface Heartbeat {
  readonly connectionId: string | null;
  readonly workItemsCount: number;
  readonly workItemTypes: readonly string[];
  readonly tokenUsage: TokenUsage | null;
}

/** A sign of life; the agent is idle from then on. @throws AppError 404 */
export function decideHeartbeat(state: AgentState, heartbeat: Heartbeat): EventDraft[] {
  const agent = existing(state);
  const { connectionId, workItemsCount, workItemTypes, tokenUsage } = heartbeat;
  const lastActivity = 'Heartbeat received';
  const drafts: EventDraft[] = [];
  if (state.status !== 'idle') {
    drafts.push(
      agentStatusChanged.draft({
        ...agent,
        from: state.status,
        to: 'idle',
        cause: 'heartbeat',
        lastActivity,
        seen: true,
        announced: true,
      }),
    );
  }
  drafts.push(
    agentHeartbeatReceived.draft({
      ...agent,
      lastActivity,
      connectionId,
      workItemsCount,
      workItemTypes: [...workItemTypes],
    }),
  );
  if (tokenUsage) {
    drafts.push(
      tokenUsageReported.draft({
        agentId: agent.agentId,
        agentName: agent.name,
        sessionId: `${agent.name}:cli`,
        ...tokenUsage,
      }),
    );
  }
  return drafts;
}

/** @throws AppError 404 */
export const decideWake = (state: AgentState, reason: string | null): EventDraft[] => [
  agentWoken.draft({ ...existing(state), reason, lastActivity: 'Woken by hand' }),
];
