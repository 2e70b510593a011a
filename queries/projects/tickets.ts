/** Names and prefixes of projects for their tasks, kept in memory while the read model stands still. */
import { projectsProjection } from '../../projections/projects/projects.ts';
import type { Freshness } from '../../shared/ports/freshness.ts';
import type { TaskProject, TaskProjects } from '../../shared/ports/projects.ts';
import { createKept } from '../kept.ts';
import { type Reads, tables } from '../reads.ts';

/** Projects of all workspaces together that one process keeps. */
const KEPT = 10_000;

/** @param freshness undefined: every project is looked up anew */
export function createTaskProjects({
  reads,
  freshness,
}: {
  readonly reads: Reads;
  readonly freshness?: Pick<Freshness, 'stamp'>;
}): TaskProjects {
  const kept = createKept<{ readonly stamp: string; readonly project: TaskProject }>({ values: KEPT });
  const find = (from: Reads, workspace: number, id: number): Promise<TaskProject | undefined> =>
    tables(from, projectsProjection)
      .selectFrom('projects')
      .select(['name', 'ticket_prefix as prefix'])
      .where('workspace_id', '=', workspace)
      .where('id', '=', id)
      .executeTakeFirst();
  return {
    async at(workspace, at) {
      if (!freshness) return (id) => find(reads.at(at), workspace, id);
      // Taken before the read: what changes in between is looked up again.
      const { value: stamp } = await freshness.stamp([projectsProjection.name], workspace, at);
      const own = kept.of(workspace);
      return async (id) => {
        const known = own.get(String(id));
        if (known?.stamp === stamp) return known.project;
        const project = await find(reads.at({}), workspace, id);
        if (project) own.set(String(id), { stamp, project });
        return project;
      };
    },
  };
}
