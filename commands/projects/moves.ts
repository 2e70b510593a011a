/**
 * Moves the projects of a deleted workspace: each is created in another workspace of the tenant under the same id.
 * Their tasks stay where they were. Every step may be repeated.
 */

import type { MovingProject } from '../../queries/workspaces/removal.ts';
import { isRefusal } from '../../shared/errors.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { claimAll } from '../naming.ts';
import { claimsFor } from './names.ts';
import { decideArchive, decideCreate, projectDecider, projectStream } from './projects.ts';

/** Number of names tried when the project's own are taken, before names derived from its id. */
const NAMES_TRIED = 9;
/** Length of a ticket prefix to which a digit is added. */
const PREFIX_KEPT = 11;

interface Names {
  readonly slug: string;
  readonly ticket_prefix: string;
}

function namesOf({ id, slug, ticket_prefix }: MovingProject): Names[] {
  const more = Array.from({ length: NAMES_TRIED - 1 }, (_, at) => ({
    slug: `${slug}-${at + 2}`,
    ticket_prefix: `${ticket_prefix.slice(0, PREFIX_KEPT)}${at + 2}`,
  }));
  return [{ slug, ticket_prefix }, ...more, { slug: `project-${id}`, ticket_prefix: `P${id}` }];
}

async function create(
  commands: Commands,
  context: CommandContext,
  project: MovingProject,
  names: Names,
): Promise<void> {
  const { workspace } = context.origin;
  const { id, archived, ...fields } = project;
  const stream = projectStream(workspace, id);
  await claimAll(commands, context, claimsFor(workspace, names), stream);
  await commands.execute(projectDecider, stream, context, (state) => {
    if (state.life !== 'none') return [];
    const created = decideCreate(state, id, { ...fields, ...names });
    const after = created.reduce((now, { type, data }) => projectDecider.evolve(now, { type, data, at: 0 }), state);
    return [...created, ...(archived ? decideArchive(after, true) : [])];
  });
}

/** Creates a project of the context's workspace in another workspace. */
export async function moveProject(
  commands: Commands,
  { origin }: CommandContext,
  to: number,
  project: MovingProject,
): Promise<void> {
  const there = { origin: { ...origin, workspace: to } };
  const tried = namesOf(project);
  for (const [at, names] of tried.entries()) {
    try {
      await create(commands, there, project, names);
      return;
    } catch (error) {
      if (!isRefusal(error) || at === tried.length - 1) throw error;
    }
  }
}
