/**
 * Whenever the deletion of a workspace was interrupted, or somebody came into a deleted workspace at the last moment,
 * its users, agents and projects move on.
 */
import { randomUUID } from 'node:crypto';
import { scheduledContext } from '../../policies/policy.ts';
import { goOnRemoving, type RemovalParts } from '../../workspaces/removal.ts';
import { EVERY_MINUTE_MS, type Schedule } from '../schedule.ts';

/**
 * Looks at all tenants once. A workspace that fails does not keep the others from being finished.
 *
 * @param deadline Unix ms: what is not done by then is for the next turn
 * @throws the first failure, at the end
 */
export async function finishRemovals(parts: RemovalParts, deadline: number): Promise<void> {
  const run = randomUUID();
  const failures: unknown[] = [];
  for (const removed of await parts.contents.inRemoval()) {
    if (Date.now() >= deadline) break;
    const context = scheduledContext(run, removed.tenant, removed.moves_to);
    await goOnRemoving(parts, context, removed, deadline).catch((error) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
}

/** How long one turn takes at most, milliseconds. */
const TURN_MS = 40_000;

export const workspaceRemovalsSchedule = (parts: RemovalParts): Schedule => ({
  id: 'workspace_removals',
  kind: 'workspace-removals',
  name: 'Finish deletions of workspaces',
  everyMs: EVERY_MINUTE_MS,
  async run() {
    await finishRemovals(parts, Date.now() + TURN_MS);
    return 'No deletion is left half done.';
  },
});
