/** Agents of projects. */
import { projectAgentsAssigned, projectAgentsUnassigned } from '../../shared/events/projects/assignments.ts';
import { seconds } from '../../shared/time.ts';
import { change, defineTable, on, update } from '../projection.ts';

export const projectAgentsTable = defineTable(
  'project_agents',
  {
    workspace_id: 'int',
    project_id: 'bigint',
    id: 'bigint',
    /** The name when it was assigned. */
    agent_name: 'text',
    /** NULL: no agent had the name. */
    agent_id: 'bigint?',
    role: 'text',
    assigned_at: 'bigint',
  },
  {
    key: ['workspace_id', 'project_id', 'id'],
    indexes: ['workspace_id, agent_id'],
  },
);

export const assignmentHandlers = [
  on(projectAgentsAssigned, ({ data, meta }) =>
    data.agents.map(({ assignment_id: id, agent_name, agent_id = null, role }) => {
      const key = { workspace_id: meta.workspace, project_id: data.project_id, id };
      return change(projectAgentsTable, key, () => ({
        ...key,
        agent_name,
        agent_id,
        role,
        assigned_at: seconds(meta.at),
      }));
    }),
  ),
  on(projectAgentsUnassigned, ({ data, meta }) =>
    data.agents.map(({ assignment_id: id }) =>
      update(projectAgentsTable, { workspace_id: meta.workspace, project_id: data.project_id, id }, () => undefined),
    ),
  ),
];
