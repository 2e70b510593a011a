/**
 * Archives a project, or deletes it for good.
 *
 * A deletion spans many streams: that of the project, and one for each of its tasks. From the first event on the
 * project is no longer visible. Then each task moves on its own stream to the general project, and the last event frees
 * the project's names. Every step may be repeated, so an interrupted deletion can be resumed: by the same request, sent
 * again, or by the schedule. The schedule also finds tasks that a request placed in the project at the last moment,
 * because it had looked up the project before.
 */

import type { ProjectDirectory, ProjectTasks } from '../../queries/projects/projects.ts';
import { AppError, unlessBehind } from '../../shared/errors.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { taskMoved } from '../../shared/events/tasks/tasks.ts';
import type { ReadModels } from '../../shared/ports/read-models.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { releaseAll } from '../naming.ts';
import { onRecord } from '../record-ids.ts';
import { moved, type TaskState, taskDecider, taskStream } from '../tasks/tasks.ts';
import { ensureGeneral } from './changes.ts';
import { namedProject } from './names.ts';
import { decideArchive, decideBeginDeletion, decideEndDeletion, projectDecider, projectStream } from './projects.ts';
import { type Ticket, takeTickets } from './tickets.ts';

export interface DeletionParts {
  readonly commands: Commands;
  readonly readModels: ReadModels;
  readonly projects: ProjectDirectory;
  readonly projectTasks: ProjectTasks;
}

/** @throws AppError 400 for the general project, 404 */
export const archiveProject = onRecord(projectDecider, projectStream, (state) => decideArchive(state, true));

/** No event for a task that has left the project in the meantime, or was deleted. */
export function decideMove(state: TaskState, from: number, { project_id, project_ticket_no }: Ticket): EventDraft[] {
  if (state.id === 0 || state.task.project_id !== from) return [];
  return [taskMoved.draft({ ...moved(state, { project_id }), project_ticket_no })];
}

/** Tasks that are moved concurrently. */
const AT_ONCE = 16;
/** Tasks that are read at once. */
const PAGE = 400;
/** How long one request moves tasks, milliseconds; the scheduled task moves the rest. */
const REQUEST_MS = 15_000;

/**
 * Deletes a project for good. Its tasks move to the general project, under new ticket numbers. They may still be
 * moving when this resolves: those of a very large project, or while read models are behind.
 *
 * @throws AppError 400 for the general project, 404
 */
export async function deleteProject(parts: DeletionParts, context: CommandContext, id: number): Promise<void> {
  const { commands, readModels } = parts;
  const { workspace } = context.origin;
  const deadline = Date.now() + REQUEST_MS;
  const begun = await commands.execute(projectDecider, projectStream(workspace, id), context, decideBeginDeletion);
  const goOn = async () => {
    // The read model must show every task that was placed in the project before.
    await readModels.reach([taskMoved.type], { position: begun.position });
    await goOnDeleting(parts, { origin: context.origin }, id, deadline);
  };
  await unlessBehind(goOn());
}

/** Resumes a deletion: moves the remaining tasks, and ends the deletion when none is left. @param deadline Unix ms */
export async function goOnDeleting(
  parts: DeletionParts,
  context: CommandContext,
  id: number,
  deadline: number,
): Promise<void> {
  const { commands, projects } = parts;
  const { workspace } = context.origin;
  const { id: general } = await ensureGeneral(commands, context, projects);
  if (!(await moveTasks(parts, context, id, general, deadline))) return;
  const stream = projectStream(workspace, id);
  await commands.execute(projectDecider, stream, context, decideEndDeletion);
  const { state } = await commands.load(projectDecider, stream);
  await releaseAll(commands, context, namedProject.held(workspace, state), stream);
}

/** @returns whether no task is left */
async function moveTasks(
  { commands, projectTasks }: DeletionParts,
  context: CommandContext,
  from: number,
  to: number,
  deadline: number,
): Promise<boolean> {
  const { workspace } = context.origin;
  for (;;) {
    const ids = await projectTasks.idsIn(workspace, from, PAGE);
    if (ids.length === 0) return true;
    const first = await takeTickets(commands, workspace, to, ids.length);
    let next = 0;
    let moved = 0;
    const worker = async () => {
      for (let at = next++; at < ids.length && Date.now() < deadline; at = next++) {
        const stream = taskStream(workspace, ids[at] as number);
        const move = (state: TaskState) => decideMove(state, from, { project_id: to, project_ticket_no: first + at });
        try {
          await commands.execute(taskDecider, stream, { origin: context.origin }, move);
          moved++;
        } catch (error) {
          // A task that others keep changing is read again.
          if (!(error instanceof AppError && error.status === 409)) throw error;
        }
      }
    };
    const workers = await Promise.allSettled(Array.from({ length: AT_ONCE }, worker));
    const failed = workers.find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
    if (moved === 0) return false;
  }
}
