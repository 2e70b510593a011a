/** Agents of projects. */
import { projectAgentsAssigned, projectAgentsUnassigned } from '../../shared/events/projects/assignments.ts';
import { seconds } from '../../shared/time.ts';
import { change, defineTable, on, update } from '../projection.ts';

export const projectAgentsTable = defineTable(
  'project_agents',
  {
    workspace_id: 'int',
    project_id: 'bigint',
    agent_name: 'text',
    id: 'bigint',
    role: 'text',
    assigned_at: 'bigint',
  },
  {
    key: ['workspace_id', 'project_id', 'agent_name'],
    indexes: ['workspace_id, project_id, assigned_at, id'],
  },
);

export const assignmentHandlers = [
  on(projectAgentsAssigned, ({ data, meta }) =>
    data.agents.map(({ assignment_id: assignmentId, agent_name, role }) =>
      change(projectAgentsTable, { workspace_id: meta.workspace, project_id: data.project_id, agent_name }, () => ({
        workspace_id: meta.workspace,
        project_id: data.project_id,
        agent_name,
        id: assignmentId,
        role,
        assigned_at: seconds(meta.at),
      })),
    ),
  ),
  on(projectAgentsUnassigned, ({ data, meta }) =>
    data.agent_names.map((agentName) =>
      update(
        projectAgentsTable,
        { workspace_id: meta.workspace, project_id: data.project_id, agent_name: agentName },
        () => undefined,
      ),
    ),
  ),
];
