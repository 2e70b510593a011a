/** Agents of projects. */
import type { Reads } from '../reads.ts';
import { projectTables } from './projects.ts';

/** In the order in which they were assigned. */
export const listAssignments = (reads: Reads, workspace: number, project: number) =>
  projectTables(reads)
    .selectFrom('project_agents')
    .select(['id', 'project_id', 'agent_name', 'role', 'assigned_at'])
    .where('workspace_id', '=', workspace)
    .where('project_id', '=', project)
    .orderBy('assigned_at')
    .orderBy('id')
    .execute();
