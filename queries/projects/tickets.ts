/** Names and prefixes of projects for their tasks, cached as long as the read model does not change. */
import { projectsProjection } from '../../projections/projects/projects.ts';
import type { FrameNames } from '../../shared/events/monitoring/frames.ts';
import type { TaskProject } from '../../shared/events/tasks/tasks.ts';
import type { Freshness, ReadAt } from '../../shared/ports/read-models.ts';
import { createLookUps } from '../kept.ts';
import { inWorkspace, type Reads } from '../reads.ts';

/** Maximum number of cached projects of all workspaces together per process. */
const KEPT = 10_000;

/** Names and prefixes of projects. Only a project's own events contain them, so they are looked up for display. */
export type TaskProjects = FrameNames['projects'];

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
    /**
     * Waits until the read model shows `at`. The function then looks projects up without waiting, so a command can call
     * it after its append. Undefined: there has never been such a project.
     *
     * @throws AppError 503 `READ_MODEL_BEHIND`
     */
    async at(workspace: number, at: ReadAt) {
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
