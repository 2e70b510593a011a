/** Working memory of one agent. */
import type { AgentRef } from '../../shared/contract/agents/agents.ts';
import type { Reads } from '../reads.ts';
import { keptWithTexts, oneWithTexts } from './agents.ts';

/**
 * The memory of an agent, text and other keys; undefined when the workspace has no such agent. Its time is that of the
 * last change or else of the registration, Unix seconds.
 *
 * @param since position of an event of the agent, for the answer to the command that appended it
 */
export async function agentMemory(reads: Reads, workspace: number, ref: AgentRef, since?: number) {
  const kept = await keptWithTexts(reads, workspace, ref, since);
  if (kept) {
    const [{ id, name, role, created_at }, { working_memory, memory_fields, memory_updated_at }] = kept;
    return { id, name, role, working_memory, memory_fields, memory_updated_at: memory_updated_at ?? created_at };
  }
  return oneWithTexts(reads, workspace, ref)
    .select(({ fn, ref: column }) => [
      't.working_memory',
      't.memory_fields',
      fn.coalesce('t.memory_updated_at', column('a.created_at')).as('memory_updated_at'),
    ])
    .executeTakeFirst();
}
