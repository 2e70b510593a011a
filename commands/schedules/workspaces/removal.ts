/**
 * Whenever the deletion of a workspace was interrupted, or somebody came into a deleted workspace at the last moment,
 * its users, agents and projects move on.
 */
import { randomUUID } from 'node:crypto';
import { scheduledContext } from '../../policies/policy.ts';
import { goOnRemoving, type RemovalParts } from '../../workspaces/removal.ts';

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
    const context = scheduledContext(run, removed.tenant, removed.movesTo);
    await goOnRemoving(parts, context, removed, deadline).catch((error) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
}
