/**
 * Moves the agents of a deleted workspace: each is registered in another workspace of the tenant under the same id. Its
 * keys and connections end. Every step may be repeated.
 */

import type { MovingAgent } from '../../queries/workspaces/removal.ts';
import { AppError, isRefusal } from '../../shared/errors.ts';
import { agentHidden } from '../../shared/events/agents/agents.ts';
import { agentMemoryFieldsSet, agentMemoryWritten } from '../../shared/events/agents/memory.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { claimAll } from '../naming.ts';
import { agentDecider, agentStream } from './agents.ts';
import { type DeletionParts, deleteAgent, updateAgent } from './changes.ts';
import { claimsFor } from './names.ts';
import { decideRegister, NEW_AGENT } from './registration.ts';

/** Number of names tried when the agent's own is taken, before a name derived from its id. */
const NAMES_TRIED = 9;

/** The agent with its whole memory, under a name that is free in the new workspace. */
function draftsOf(agent: MovingAgent, name: string): EventDraft[] {
  const { id: agentId, memory, memoryFields } = agent;
  const size = memory.length;
  return [
    ...(memory === ''
      ? []
      : [agentMemoryWritten.draft({ agent_id: agentId, name, text: memory, append: false, size })]),
    ...(Object.keys(memoryFields).length === 0
      ? []
      : [
          agentMemoryFieldsSet.draft({
            agent_id: agentId,
            name,
            fields: memoryFields,
            size,
            append: false,
            announced: memory !== '',
          }),
        ]),
    ...(agent.hidden ? [agentHidden.draft({ agent_id: agentId, name })] : []),
  ];
}

async function register(commands: Commands, context: CommandContext, agent: MovingAgent, name: string): Promise<void> {
  const { workspace } = context.origin;
  const stream = agentStream(workspace, agent.id);
  await claimAll(commands, context, claimsFor(workspace, { name }), stream);
  const { role, soul, config, runtime_type, source } = agent;
  const own = { name, role, soul_content: soul, config, runtime_type, source, via: 'operator' as const };
  const registration = { ...NEW_AGENT, ...own };
  await commands.execute(agentDecider, stream, context, (state) =>
    state.registered ? [] : [...decideRegister(state, agent.id, registration), ...draftsOf(agent, name)],
  );
}

/** Moves an agent from the workspace of the context into another one. */
export async function moveAgent(
  { commands, leases }: DeletionParts,
  { origin }: CommandContext,
  to: number,
  agent: MovingAgent,
): Promise<void> {
  const there = { origin: { ...origin, workspace: to } };
  const { state } = await commands.load(agentDecider, agentStream(to, agent.id));
  if (!state.registered) {
    const more = Array.from({ length: NAMES_TRIED - 1 }, (_, at) => `${agent.name}-${at + 2}`);
    for (const name of [agent.name, ...more, `agent-${agent.id}`]) {
      try {
        await register(commands, there, agent, name);
        break;
      } catch (error) {
        // The name is taken, or no longer allowed.
        if (!isRefusal(error) || name === `agent-${agent.id}`) throw error;
      }
    }
  }
  await deleteAgent({ commands, leases }, { origin }, agent.id, false).catch((error: unknown) => {
    if (!(error instanceof AppError && error.status === 404)) throw error;
  });
  if (agent.session_key !== null)
    await updateAgent(commands, there, agent.id, { session_key: agent.session_key }, { via: 'id' });
}
