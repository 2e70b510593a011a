/** Projects as the tickets of their tasks name them, kept in memory while the read model stands still. */
import { projectsProjection } from '../../projections/projects/projects.ts';
import type { Freshness } from '../../shared/ports/freshness.ts';
import type { FoundProject, KnownProjects, ProjectDirectory } from '../../shared/ports/projects.ts';
import { atHead } from '../../shared/ports/read-models.ts';
import { createKept } from '../kept.ts';

/** Projects of all workspaces together that one process keeps. */
const KEPT = 10_000;

export function createKnownProjects(parts: {
  readonly directory: Pick<ProjectDirectory, 'find'>;
  readonly freshness: Pick<Freshness, 'stamp'>;
}): KnownProjects {
  const { directory, freshness } = parts;
  const kept = createKept<{ readonly stamp: string; readonly project: FoundProject | null }>({ values: KEPT });
  const stampOf = async (workspace: number) =>
    (await freshness.stamp([projectsProjection.name], workspace, atHead())).value;
  return {
    async current(workspace) {
      const own = kept.of(workspace);
      const stamp = await stampOf(workspace);
      return (id) => {
        const found = own.get(String(id));
        return found?.stamp === stamp ? found.project : undefined;
      };
    },
    async learn(workspace, id) {
      // Taken before the read: what changes in between is looked up again.
      const stamp = await stampOf(workspace);
      const project = (await directory.find(workspace, id)) ?? null;
      kept.of(workspace).set(String(id), { stamp, project });
      return project;
    },
  };
}
