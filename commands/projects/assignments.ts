/** Agents of a project. Names that no agent has are accepted. */
import { invalid } from '../../shared/errors.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { projectAgentsAssigned } from '../../shared/events/projects/assignments.ts';
import { agentInLog } from '../agents/names.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import {
  decideLeave,
  existing,
  isMember,
  type Member,
  type ProjectState,
  projectDecider,
  projectStream,
} from './projects.ts';

/** Maximum number of agents per project. */
export const MAX_MEMBERS = 1_000;

/** Name of the counter for ids of assignments. */
export const ASSIGNMENT = 'project_agent';

/**
 * No event, and no change of the role, when the agent is already a member.
 *
 * @throws AppError 400 when there are too many, 404
 */
export function decideAssign(state: ProjectState, assignmentId: number, agent: Member, role: string): EventDraft[] {
  const project = existing(state);
  if ([...state.agents.values()].some((one) => isMember(one, agent))) return [];
  if (state.agents.size >= MAX_MEMBERS)
    throw invalid(`A project has at most ${MAX_MEMBERS} agents; remove one before you add another.`);
  return [projectAgentsAssigned.draft({ ...project, agents: [{ assignment_id: assignmentId, ...agent, role }] })];
}

/** No event when the agent is not a member. @throws AppError 404 */
export function decideUnassign(state: ProjectState, agent: Member): EventDraft[] {
  existing(state);
  return decideLeave(state, (one) => isMember(one, agent));
}

/** The agent that has a name now, or the name alone. */
async function memberNamed(commands: Commands, { origin }: CommandContext, name: string): Promise<Member> {
  const agent = await agentInLog(commands, origin.workspace, { name });
  return { agent_name: name, ...(agent && { agent_id: agent.id }) };
}

/** @throws AppError 400, 404 */
export async function assignAgent(
  commands: Commands,
  context: CommandContext,
  projectId: number,
  { agent_name: name, role }: { readonly agent_name: string; readonly role: string },
): Promise<Executed> {
  const agent = await memberNamed(commands, context, name);
  const id = await commands.counters.take(ASSIGNMENT);
  return commands.execute(projectDecider, projectStream(context.origin.workspace, projectId), context, (state) =>
    decideAssign(state, id, agent, role),
  );
}

/** @throws AppError 404 */
export async function unassignAgent(
  commands: Commands,
  context: CommandContext,
  projectId: number,
  name: string,
): Promise<Executed> {
  const agent = await memberNamed(commands, context, name);
  return commands.execute(projectDecider, projectStream(context.origin.workspace, projectId), context, (state) =>
    decideUnassign(state, agent),
  );
}
