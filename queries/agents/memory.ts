/** Working memory of one agent. */
import type { AgentRef } from '../../shared/contract/agents/agents.ts';
import type { Reads } from '../reads.ts';
import { oneWithTexts } from './agents.ts';

/**
 * The memory of an agent, text and other keys; undefined when the workspace has no such agent. Its time is that of the
 * last change, otherwise that of the registration, Unix seconds.
 */
export function agentMemory(reads: Reads, workspace: number, ref: AgentRef) {
  return oneWithTexts(reads, workspace, ref)
    .select(({ fn, ref: column }) => [
      't.working_memory',
      't.memory_fields',
      fn.coalesce('t.memory_updated_at', column('a.created_at')).as('memory_updated_at'),
    ])
    .executeTakeFirst();
}
