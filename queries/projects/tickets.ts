/** Names and prefixes of projects for their tasks, cached as long as the read model does not change. */
import { projectsProjection } from '../../projections/projects/projects.ts';
import type { TaskProject, TaskProjects } from '../../shared/ports/projects/projects.ts';
import type { Freshness } from '../../shared/ports/read-models.ts';
import { createLookUps } from '../kept.ts';
import { inWorkspace, type Reads } from '../reads.ts';

/** Maximum number of cached projects of all workspaces together per process. */
const KEPT = 10_000;

/** @param freshness undefined: every project is looked up again */
export function createTaskProjects({
  reads,
  freshness,
}: {
  readonly reads: Reads;
  readonly freshness?: Pick<Freshness, 'stamp'>;
}): TaskProjects {
  const models = [projectsProjection.name];
  const lookUps = createLookUps<TaskProject | undefined>({
    reads,
    freshness,
    models,
    scope: 'workspace',
    values: KEPT,
  });
  return {
    async at(workspace, at) {
      const lookUp = await lookUps(workspace, at);
      return (id) =>
        lookUp(String(id), (then) =>
          inWorkspace(then, projectsProjection, 'projects', workspace)
            .select(['name', 'ticket_prefix as prefix'])
            .where('id', '=', id)
            .executeTakeFirst(),
        );
    },
  };
}
