/**
 * Deleting a workspace: its users, agents and projects go to the main workspace of its tenant; tasks and messages stay
 * in the log, where no call finds them.
 *
 * A deletion spans many streams. From the first event on nobody finds the workspace any more; then each user, agent and
 * project moves on its own stream, then the last event frees the slug. Every step may be repeated, so whoever finds a
 * deletion half done goes on with it: the same request, sent again, or the schedule. The schedule also finds those who
 * came into the workspace at the last moment.
 */
import { AppError, invalid } from '../../shared/errors.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { tenantStream } from '../../shared/events/super/tenants.ts';
import { workspaceDeleted, workspaceRemovalBegun } from '../../shared/events/workspaces/workspaces.ts';
import type { WorkspaceContents } from '../../shared/ports/workspaces.ts';
import { moveAgent } from '../agents/moves.ts';
import { decideMove } from '../auth/changes.ts';
import { type AdminsOf, changeUser } from '../auth/last-admin.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { executeWithNames } from '../naming.ts';
import { moveProject } from '../projects/moves.ts';
import { existing, type TenantState, tenantDecider } from '../super/tenants.ts';
import { namedTenant, workspaceOf } from './workspaces.ts';

export interface RemovalParts {
  readonly commands: Commands;
  readonly contents: WorkspaceContents;
  readonly admins: AdminsOf;
}

/** A request goes on moving for as long; what is left is for the schedule. Milliseconds. */
const REQUEST_MS = 15_000;

/** No event when the deletion has begun already: it is gone on with. @throws AppError 400 for the main workspace, 404 */
export function decideBeginRemoval(state: TenantState, id: number, agents: number): EventDraft[] {
  if (state.workspaces.get(id)?.removal) return [];
  const { name, slug } = workspaceOf(state, id);
  if (id === state.mainWorkspace)
    throw invalid('This is the main workspace of the tenant, which cannot be deleted; delete another one.');
  const movesTo = state.mainWorkspace;
  return [workspaceRemovalBegun.draft({ ...existing(state), workspaceId: id, name, slug, movesTo, agents })];
}

/** No event when it has been done already. */
export function decideEndRemoval(state: TenantState, id: number): EventDraft[] {
  const known = state.workspaces.get(id);
  if (!known?.removal) return [];
  const { name, slug, removal } = known;
  return [workspaceDeleted.draft({ ...existing(state), workspaceId: id, name, slug, ...removal })];
}

export interface Removed {
  readonly name: string;
  readonly movesTo: number;
}

/** Deletes a workspace of the caller's tenant. A very large one may still be moving when this resolves. @throws AppError 400, 404 */
export async function deleteWorkspace(parts: RemovalParts, context: CommandContext, id: number): Promise<Removed> {
  const { commands, contents } = parts;
  const { tenant } = context.origin;
  const deadline = Date.now() + REQUEST_MS;
  const agents = await contents.agentCount(id);
  let removed: Removed | undefined;
  await commands.execute(tenantDecider, tenantStream(tenant), context, (state) => {
    const drafts = decideBeginRemoval(state, id, agents);
    removed = { name: state.workspaces.get(id)?.name ?? '', movesTo: state.mainWorkspace };
    return drafts;
  });
  const { movesTo } = removed as unknown as Removed;
  await goOnRemoving(parts, { origin: context.origin }, { workspace: id, movesTo }, deadline);
  return removed as unknown as Removed;
}

/** Moves one after another until none is left. @returns whether none is left */
async function moveAll<T>(
  some: () => Promise<readonly T[]>,
  move: (one: T) => Promise<unknown>,
  deadline: number,
): Promise<boolean> {
  for (;;) {
    const found = await some();
    if (found.length === 0) return true;
    for (const one of found) {
      if (Date.now() >= deadline) return false;
      await move(one);
    }
  }
}

const unlessGone = (error: unknown): void => {
  if (!(error instanceof AppError && error.status === 404)) throw error;
};

/**
 * Goes on with a deletion that has begun: moves what is left, and ends it when there is nothing any more.
 *
 * @param deadline Unix ms
 */
export async function goOnRemoving(
  { commands, contents, admins }: RemovalParts,
  { origin }: CommandContext,
  { workspace, movesTo }: { readonly workspace: number; readonly movesTo: number },
  deadline: number,
): Promise<void> {
  const { tenant } = origin;
  const there = { tenant, workspace: movesTo };
  const from = { origin: { ...origin, workspace } };
  const moveUser = (userId: number) =>
    changeUser(commands, { origin: { ...origin, workspace: movesTo } }, admins, userId, (state) =>
      // Somebody may have put the user elsewhere meanwhile.
      state.exists && state.workspace !== workspace ? [] : decideMove(state, userId, there),
    ).catch(unlessGone);
  const isEmpty =
    (await moveAll(() => contents.users(workspace), moveUser, deadline)) &&
    (await moveAll(
      () => contents.projects(workspace, movesTo),
      (project) => moveProject(commands, from, movesTo, project),
      deadline,
    )) &&
    (await moveAll(
      () => contents.agents(workspace),
      (agent) => moveAgent(commands, from, movesTo, agent),
      deadline,
    ));
  if (!isEmpty) return;
  const context = { origin: { ...origin, workspace: movesTo } };
  await executeWithNames(commands, context, namedTenant, tenantStream(tenant), [], (state) =>
    decideEndRemoval(state, workspace),
  );
}
