/** Heartbeats, with the work items waiting for the agent, and wake-ups. */
import { agentDecider, agentStream } from '../../../commands/agents/agents.ts';
import { decideWake, recordHeartbeat, type TokenUsage } from '../../../commands/agents/heartbeat.ts';
import { refuseInjection } from '../../../commands/agents/injection.ts';
import { findAgent } from '../../../queries/agents/agents.ts';
import { type Inbox, inboxOf } from '../../../queries/agents/heartbeat.ts';
import { agentParams } from '../../../shared/contract/agents/agents.ts';
import * as contract from '../../../shared/contract/agents/heartbeat.ts';
import { costOf } from '../../../shared/contract/tokens/costs.ts';
import { orNotFound } from '../../../shared/errors.ts';
import { type Identity, requireSelf, taskViewOf } from '../../../shared/identity.ts';
import { newId } from '../../../shared/ids.ts';
import { seconds } from '../../../shared/time.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';
import { tasksShownTo } from '../tasks/tasks.ts';
import { requireAgent } from './agents.ts';

async function responseOf(
  services: Pick<Services, 'displayNames'>,
  identity: Identity,
  { agent, workItems, pendingTasks, messages }: Inbox,
  checked_at: number,
) {
  const pending_tasks = pendingTasks.length === 0 ? [] : await tasksShownTo(services, identity, pendingTasks);
  const total = workItems.reduce((sum, group) => sum + group.count, 0);
  const { name } = agent;
  return total === 0
    ? {
        status: 'HEARTBEAT_OK',
        message: `Nothing is waiting for ${name}.`,
        agent: name,
        checked_at,
        pending_tasks,
        messages,
      }
    : {
        status: 'WORK_ITEMS_FOUND',
        work_items: workItems,
        total_items: total,
        agent: name,
        checked_at,
        pending_tasks,
        messages,
      };
}

const look = defineRoute({
  method: 'get',
  path: '/api/agents/{id}/heartbeat',
  summary: 'Get the pending work of an agent',
  mcp: { tool: 'get_pending_work' },
  description: 'Changes nothing. A caller that speaks for an agent may ask only for that agent.',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: agentParams,
  refuses: [403, 404],
  responses: { 200: { description: 'What is waiting for the agent', schema: contract.heartbeatResponse } },
  async respond({ params, identity, services }) {
    const now = seconds(services.now());
    const agent = orNotFound(await findAgent(services.reads, identity.workspace, params.id), 'Agent');
    requireSelf(identity, agent);
    const inbox = await inboxOf(services.reads, taskViewOf(identity), agent, now);
    return responseOf(services, identity, inbox, now);
  },
});

const beat = defineRoute({
  method: 'post',
  path: '/api/agents/{id}/heartbeat',
  summary: 'Send a heartbeat, and get the pending work of the agent',
  mcp: { tool: 'send_heartbeat', idempotent: true },
  description:
    'The agent is idle afterwards. A complete `token_usage` is recorded with it. A heartbeat of an idle agent for which the same work waits as before moves `last_seen`, but is no event and no activity; the tokens that it reports are an event.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'agent-heartbeat',
  params: agentParams,
  agents: ({ params }) => params.id,
  body: contract.heartbeatBody,
  bodyOptional: true,
  refuses: [404],
  responses: { 200: { description: 'Recorded', schema: contract.heartbeatPostResponse } },
  async respond({ params, body, identity, services, command, context }) {
    const usage = await usageOf(services, identity.workspace, body.token_usage);
    const heartbeat = { connection_id: body.connection_id ?? null, tokenUsage: usage };
    const caller = { identity, arrivedAt: context.startedAt };
    const inbox = await recordHeartbeat(services, command, caller, params.id, heartbeat);
    const response = await responseOf(services, identity, inbox, seconds(services.now()));
    // Not a spread followed by further properties: see "hidden class" in docs/benchmarks.md.
    return Object.assign({ success: true }, response, { token_recorded: usage !== null });
  },
});

/** A complete report of token usage; null for an incomplete one, which does not make the heartbeat fail. */
async function usageOf(services: Services, workspace: number, given: unknown): Promise<TokenUsage | null> {
  if (given === undefined || given === null) return null;
  const parsed = contract.tokenUsage.safeParse(given);
  if (!parsed.success) return null;
  const { taskId, ...usage } = parsed.data;
  const { tasks, prices } = await services.tokens.lookUp(workspace, { taskIds: taskId ? [taskId] : [] });
  return {
    ...usage,
    id: newId(),
    task_id: taskId && tasks.has(taskId) ? taskId : null,
    ...costOf(usage, prices, services.settings.subscribedProviders),
  };
}

const wake = defineRoute({
  method: 'post',
  path: '/api/agents/{id}/wake',
  summary: 'Notify an agent to check its tasks and notifications',
  description:
    'The agent is idle afterwards. It learns about the call from the stream. A reason that tries to take over the agent is refused.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'refused' },
  params: agentParams,
  agents: ({ params }) => params.id,
  body: contract.wakeBody,
  bodyOptional: true,
  refuses: [404, 422],
  responses: { 200: { description: 'Recorded', schema: contract.wakeResponse } },
  async respond({ params, body, identity, services, command }) {
    const agent = await requireAgent(services, identity, params.id);
    const reason = body.reason || body.message || null;
    if (reason !== null) refuseInjection('The reason', reason);
    await services.commands.execute(agentDecider, agentStream(identity.workspace, agent.id), command, (state) =>
      decideWake(state, reason),
    );
    const message = reason ?? `${agent.name}, please look at your tasks and notifications.`;
    return { success: true, message, session_key: agent.session_key };
  },
});

export const agentHeartbeatRoutes: readonly Route[] = [look, beat, wake];
