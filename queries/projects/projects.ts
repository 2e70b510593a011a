/** Projects: lookups for commands. */
import { projectsProjection } from '../../projections/projects/projects.ts';
import type { FoundProject, ProjectDirectory } from '../../shared/ports/projects.ts';
import { type Reads, tables } from '../reads.ts';

export const projectTables = (reads: Reads) => tables(reads, projectsProjection);

/** Projects that callers can see; the others are being deleted, or have been. */
const SEEN = ['active', 'archived'] as const;
const GENERAL_SLUG = 'general';

/** What commands need to look up about projects. */
export function projectDirectory(reads: Reads): ProjectDirectory {
  const seen = (workspace: number, statuses: readonly string[]) =>
    projectTables(reads)
      .selectFrom('projects')
      .select(['id', 'name', 'ticket_prefix as prefix', 'slug', 'status'])
      .where('workspace_id', '=', workspace)
      .where('status', 'in', statuses);
  const one = (found: { status: string } | undefined) => found as FoundProject | undefined;
  const general = async (workspace: number) =>
    one(await seen(workspace, SEEN).where('slug', '=', GENERAL_SLUG).executeTakeFirst());
  return {
    find: async (workspace, id) => one(await seen(workspace, SEEN).where('id', '=', id).executeTakeFirst()),
    general,
    async placeFor(workspace, id) {
      const active = seen(workspace, ['active']);
      const asked = id === undefined ? undefined : await active.where('id', '=', id).executeTakeFirst();
      return one(asked ?? (await general(workspace)) ?? (await active.orderBy('id').executeTakeFirst()));
    },
  };
}
