/** Projects deleted for good, on the service of `projects.test.ts`. */
import type { ProjectsWorld } from './assignments.ts';

export function describeDeletion(_shared: () => ProjectsWorld): void {}
