/** Agents of a project. Names are not checked against existing agents. */
import { invalid } from '../../shared/errors.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { projectAgentsAssigned, projectAgentsUnassigned } from '../../shared/events/projects/assignments.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { onRecord } from '../record-ids.ts';
import { existing, type ProjectState, projectDecider, projectStream } from './projects.ts';

/** Maximum number of agents per project. */
export const MAX_MEMBERS = 1_000;

/** Name of the counter for ids of assignments. */
export const ASSIGNMENT = 'project_agent';

/**
 * No event, and no change of the role, when the agent is already a member.
 *
 * @throws AppError 400 when there are too many, 404
 */
export function decideAssign(state: ProjectState, assignmentId: number, agentName: string, role: string): EventDraft[] {
  const project = existing(state);
  if (state.agents.has(agentName)) return [];
  if (state.agents.size >= MAX_MEMBERS)
    throw invalid(`A project has at most ${MAX_MEMBERS} agents; remove one before you add another.`);
  return [
    projectAgentsAssigned.draft({ ...project, agents: [{ assignment_id: assignmentId, agent_name: agentName, role }] }),
  ];
}

/** No event when the agent is not a member. @throws AppError 404 */
export function decideUnassign(state: ProjectState, agentName: string): EventDraft[] {
  const project = existing(state);
  if (!state.agents.has(agentName)) return [];
  return [projectAgentsUnassigned.draft({ ...project, agent_names: [agentName] })];
}

/** @throws AppError 400, 404 */
export async function assignAgent(
  commands: Commands,
  context: CommandContext,
  projectId: number,
  { agent_name: agentName, role }: { readonly agent_name: string; readonly role: string },
): Promise<Executed> {
  const id = await commands.counters.take(ASSIGNMENT);
  return commands.execute(projectDecider, projectStream(context.origin.workspace, projectId), context, (state) =>
    decideAssign(state, id, agentName, role),
  );
}

/** @throws AppError 404 */
export const unassignAgent = onRecord(projectDecider, projectStream, decideUnassign);
