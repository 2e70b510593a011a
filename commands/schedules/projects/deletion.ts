/**
 * Whenever the deletion of a project was interrupted, or a task was placed in a deleted project at the last moment, the
 * tasks move on.
 */
import { randomUUID } from 'node:crypto';
import { scheduledContext } from '../../policies/policy.ts';
import { type DeletionParts, goOnDeleting } from '../../projects/deletion.ts';
import { EVERY_MINUTE_MS, type Schedule } from '../schedule.ts';

/**
 * Looks at all workspaces once. A project that fails does not keep the others from being finished.
 *
 * @param deadline Unix ms: what is not done by then is for the next turn
 * @throws the first failure, at the end
 */
export async function finishDeletions(parts: DeletionParts, deadline: number): Promise<void> {
  const run = randomUUID();
  const failures: unknown[] = [];
  for (const { tenant, workspace, id } of await parts.projectTasks.inDeletion()) {
    if (Date.now() >= deadline) break;
    await goOnDeleting(parts, scheduledContext(run, tenant, workspace), id, deadline).catch((error) => {
      failures.push(error);
    });
  }
  if (failures.length > 0) throw failures[0];
}

/** How long one turn takes at most, milliseconds. */
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
