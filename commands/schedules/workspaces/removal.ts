/**
 * Moves the users, agents and projects of a deleted workspace when its deletion was interrupted, or a record was moved
 * there at the last moment.
 */
import { workspacesInRemoval } from '../../../queries/workspaces/removal.ts';
import { newId } from '../../../shared/ids.ts';
import { scheduledContext } from '../../policies/policy.ts';
import { goOnRemoving, type RemovalParts } from '../../workspaces/removal.ts';
import { EVERY_MINUTE_MS, forAll, type Schedule } from '../schedule.ts';

/**
 * Checks all tenants once. A failed workspace does not stop the others.
 *
 * @param deadline Unix ms: the rest is left to the next turn
 * @throws the first failure, at the end
 */
export async function finishRemovals(parts: RemovalParts, deadline: number): Promise<void> {
  const run = newId();
  await forAll(await workspacesInRemoval(parts.reads), async (removed) => {
    const context = scheduledContext(run, removed.tenant, removed.moves_to);
    if (Date.now() < deadline) await goOnRemoving(parts, context, removed, deadline);
  });
}

/** Maximum duration of one turn, milliseconds. */
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
