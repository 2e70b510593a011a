/** Agents of a project: list, add, remove. */
import { assignAgent, unassignAgent } from '../../../commands/projects/assignments.ts';
import { MEMBER } from '../../../commands/projects/projects.ts';
import { listAssignments } from '../../../queries/projects/assignments.ts';
import { idParams } from '../../../shared/contract/common.ts';
import * as contract from '../../../shared/contract/projects/assignments.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { requireOwnTenant, requireProject } from './projects.ts';

const path = '/api/projects/{id}/agents';

const list = defineRoute({
  method: 'get',
  path,
  summary: 'Agents of a project, in the order in which they were assigned',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: idParams,
  refuses: [403, 404],
  responses: { 200: { description: 'Agents with their roles', schema: contract.assignmentsResponse } },
  async respond(call) {
    const { params, identity, services } = call;
    await requireOwnTenant(call);
    await requireProject(services, identity, params.id);
    return { assignments: await listAssignments(services.reads, identity.workspace, params.id) };
  },
});

const assign = defineRoute({
  method: 'post',
  path,
  summary: 'Assign an agent to a project',
  description:
    'An agent stays under a new name, and leaves when it is deleted. The name may be that of no agent. One that is assigned already keeps its role.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  params: idParams,
  body: contract.assignBody,
  agents: ({ body }) => ({ name: body.agent_name }),
  refuses: [404],
  responses: { 201: { description: 'Assigned', schema: contract.assignedResponse } },
  async respond(call) {
    const { params, body, services, command } = call;
    await requireOwnTenant(call);
    const { agent_name, role = MEMBER } = body;
    await assignAgent(services.commands, command, params.id, { agent_name, role });
    return { success: true };
  },
});

const unassign = defineRoute({
  method: 'delete',
  path,
  summary: 'Remove an agent from a project',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  params: idParams,
  query: contract.unassignQuery,
  agents: ({ query }) => ({ name: query.agent_name }),
  refuses: [404],
  responses: { 200: { description: 'The agent is no member now', schema: contract.assignedResponse } },
  async respond(call) {
    const { params, query, services, command } = call;
    await requireOwnTenant(call);
    await unassignAgent(services.commands, command, params.id, query.agent_name);
    return { success: true };
  },
});

export const projectAssignmentRoutes: readonly Route[] = [list, assign, unassign];
