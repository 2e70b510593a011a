/**
 * Moves the tasks of a deleted project when its deletion was interrupted, or a task was placed in it at the last
 * moment.
 */
import { newId } from '../../../shared/ids.ts';
import { scheduledContext } from '../../policies/policy.ts';
import { type DeletionParts, goOnDeleting } from '../../projects/deletion.ts';
import { EVERY_MINUTE_MS, forAll, type Schedule } from '../schedule.ts';

/**
 * Checks all workspaces once. A failed project does not stop the others.
 *
 * @param deadline Unix ms: the rest is left to the next turn
 * @throws the first failure, at the end
 */
export async function finishDeletions(parts: DeletionParts, deadline: number): Promise<void> {
  const run = newId();
  await forAll(await parts.projectTasks.inDeletion(), async ({ tenant, workspace, id }) => {
    if (Date.now() < deadline) await goOnDeleting(parts, scheduledContext(run, tenant, workspace), id, deadline);
  });
}

/** Maximum duration of one turn, milliseconds. */
const TURN_MS = 40_000;

export const projectDeletionsSchedule = (parts: DeletionParts): Schedule => ({
  id: 'project_deletions',
  kind: 'project-deletions',
  name: 'Finish deletions of projects',
  everyMs: EVERY_MINUTE_MS,
  async run() {
    await finishDeletions(parts, Date.now() + TURN_MS);
    return 'No deletion is left half done.';
  },
});
