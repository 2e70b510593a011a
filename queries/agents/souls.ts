/** Soul of one agent. */
import type { AgentRef } from '../../shared/contract/agents/agents.ts';
import type { Reads } from '../reads.ts';
import { keptWithTexts, oneWithTexts } from './agents.ts';

/**
 * The soul of an agent; undefined when the workspace has no such agent. Its time is that of the last change or else of
 * the registration, Unix seconds.
 *
 * @param since position of an event of the agent, for the answer to the command that appended it
 */
export async function agentSoul(reads: Reads, workspace: number, ref: AgentRef, since?: number) {
  const kept = await keptWithTexts(reads, workspace, ref, since);
  if (kept) {
    const [{ id, name, role, created_at }, { soul_content, soul_updated_at }] = kept;
    return { id, name, role, soul_content, soul_updated_at: soul_updated_at ?? created_at };
  }
  return oneWithTexts(reads, workspace, ref)
    .select(({ fn, ref: column }) => [
      't.soul_content',
      fn.coalesce('t.soul_updated_at', column('a.created_at')).as('soul_updated_at'),
    ])
    .executeTakeFirst();
}
