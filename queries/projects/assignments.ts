/** Agents of projects. */
import { projectsProjection } from '../../projections/projects/projects.ts';
import { inWorkspace, type Reads } from '../reads.ts';

/** In the order in which they were assigned. */
export const listAssignments = (reads: Reads, workspace: number, project: number) =>
  inWorkspace(reads, projectsProjection, 'project_agents', workspace)
    .select(['id', 'project_id', 'agent_name', 'role', 'assigned_at'])
    .where('project_id', '=', project)
    .orderBy('assigned_at')
    .orderBy('id')
    .execute();
