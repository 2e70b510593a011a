/** Soul of one agent. */
import type { AgentRef } from '../../shared/contract/agents/agents.ts';
import type { Reads } from '../reads.ts';
import { oneWithTexts } from './agents.ts';

/**
 * The soul of an agent; undefined when the workspace has no such agent. Its time is that of the last change, otherwise
 * that of the registration, Unix seconds.
 */
export function agentSoul(reads: Reads, workspace: number, ref: AgentRef) {
  return oneWithTexts(reads, workspace, ref)
    .select(({ fn, ref: column }) => [
      't.soul_content',
      fn.coalesce('t.soul_updated_at', column('a.created_at')).as('soul_updated_at'),
    ])
    .executeTakeFirst();
}
