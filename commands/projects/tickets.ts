/** Ticket numbers: each project counts its tasks from 1, and no number is given twice. */
import type { FoundProject, ProjectDirectory } from '../../queries/projects/projects.ts';
import { arrival, type CommandContext, type Commands } from '../handler.ts';
import { ensureGeneral } from './changes.ts';

/** The project of a task, and the task's number in it. */
export interface Ticket {
  readonly project_id: number;
  readonly project_ticket_no: number;
}

const counterOf = (workspace: number, projectId: number): string => `ticket-${workspace}-${projectId}`;

/** Reserves `count` numbers of a project and returns the first. An unused number leaves a gap. */
export const takeTickets = async (
  commands: Pick<Commands, 'counters'>,
  workspace: number,
  projectId: number,
  count = 1,
): Promise<number> => commands.counters.take(counterOf(workspace, projectId), count);

/**
 * A ticket for a new or moved task, and its project: the requested project if it is active, otherwise the general one
 * (`ProjectDirectory.placeFor`).
 */
export async function takeTicket(
  commands: Commands,
  context: CommandContext,
  directory: ProjectDirectory,
  projectId: number | undefined,
): Promise<{ readonly ticket: Ticket; readonly project: FoundProject }> {
  const { workspace } = context.origin;
  const project =
    (await directory.placeFor(workspace, projectId, arrival(context))) ??
    (await ensureGeneral(commands, context, directory));
  const ticketNo = await takeTickets(commands, workspace, project.id);
  return { ticket: { project_id: project.id, project_ticket_no: ticketNo }, project };
}
