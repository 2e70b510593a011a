/** Commands that create or change a project. */

import type { FoundProject, ProjectDirectory } from '../../queries/projects/projects.ts';
import { unavailable } from '../../shared/errors.ts';
import { pause } from '../../shared/waiting.ts';
import { claimantOf, isClaimed } from '../claims.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { createWithNames, executeWithNames } from '../naming.ts';
import { reserveId } from '../record-ids.ts';
import { ASSIGNMENT } from './assignments.ts';
import { claimsFor, namedProject, projectSlugKind } from './names.ts';
import {
  decideCreate,
  decideUpdate,
  GENERAL,
  type NewProject,
  type ProjectState,
  type ProjectUpdate,
  projectDecider,
  projectStream,
} from './projects.ts';

/** Creates a project. @throws AppError 409 when its slug or ticket prefix is taken */
export async function createProject(
  commands: Commands,
  context: CommandContext,
  project: NewProject,
): Promise<{ readonly id: number; readonly executed: Executed }> {
  const { workspace } = context.origin;
  const id = await reserveId(commands, context, 'project', (one) => projectStream(workspace, one));
  const stream = projectStream(workspace, id);
  const claims = claimsFor(workspace, project);
  const decide = (state: ProjectState) => decideCreate(state, id, project);
  return { id, executed: await createWithNames(commands, context, projectDecider, stream, claims, decide) };
}

/**
 * Changes a project.
 *
 * @throws AppError 400 when it would archive the general project, 404, 409 when the prefix is taken
 */
export async function updateProject(
  commands: Commands,
  context: CommandContext,
  id: number,
  update: ProjectUpdate,
): Promise<Executed> {
  const { workspace } = context.origin;
  const count = update.assignedAgents?.length ?? 0;
  const first = count > 0 ? await commands.counters.take(ASSIGNMENT, count) : 0;
  const ids = Array.from({ length: count }, (_, at) => first + at);
  const wanted = claimsFor(workspace, { ticket_prefix: update.ticket_prefix });
  return executeWithNames(commands, context, namedProject, projectStream(workspace, id), wanted, (state) =>
    decideUpdate(state, update, ids),
  );
}

/** How long to wait for the general project while another request creates it, milliseconds. */
const GENERAL_WAIT_MS = 1_000;
const GENERAL_PAUSE_MS = 20;

/**
 * The general project of the caller's workspace, created if there is none.
 *
 * @param waitMs how long to wait for a request that has claimed its names but not created it yet
 * @throws AppError 503 when it was not created in that time
 */
export async function ensureGeneral(
  commands: Commands,
  context: CommandContext,
  directory: ProjectDirectory,
  waitMs = GENERAL_WAIT_MS,
): Promise<FoundProject> {
  return (await directory.general(context.origin.workspace)) ?? (await makeGeneral(commands, context, waitMs));
}

/** The same for a workspace that is known to have no general project, or was just created. */
export async function makeGeneral(
  commands: Commands,
  { origin }: CommandContext,
  waitMs = GENERAL_WAIT_MS,
): Promise<FoundProject> {
  const deadline = Date.now() + waitMs;
  for (;;) {
    try {
      // Without intents: its id is not part of the request, because only some runs have to create it.
      return generalOf((await createProject(commands, { origin }, NEW_GENERAL)).id);
    } catch (error) {
      if (!isClaimed(error)) throw error;
      const made = await generalInLog(commands, { origin });
      if (made) return made;
      if (Date.now() >= deadline)
        throw unavailable('The general project of this workspace is still being created; try again in a moment.', {
          code: 'GENERAL_PROJECT_PENDING',
          cause: error,
        });
      await pause(GENERAL_PAUSE_MS, undefined, { ref: true });
    }
  }
}

/** The general project according to the log, which may be ahead of the read models; then waits until they show it. */
async function generalInLog(commands: Commands, context: CommandContext): Promise<FoundProject | undefined> {
  const stream = await claimantOf(commands, projectSlugKind, context.origin.workspace, GENERAL.slug);
  if (stream === undefined) return undefined;
  let general: FoundProject | undefined;
  await commands.execute(projectDecider, stream, context, ({ life, id, name, prefix }) => {
    general = life === 'active' ? { ...generalOf(id), name, prefix } : undefined;
    return [];
  });
  return general;
}

const generalOf = (id: number): FoundProject => ({
  id,
  name: GENERAL.name,
  prefix: GENERAL.ticket_prefix,
  slug: GENERAL.slug,
  status: 'active',
});

const NEW_GENERAL: NewProject = { ...GENERAL, description: null, github_repo: null, deadline: null, color: null };
