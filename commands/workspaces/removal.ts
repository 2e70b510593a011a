/**
 * Deletes a workspace: its users, agents and projects move to the main workspace of its tenant; tasks and messages stay
 * in the log, where no call finds them. Its automatic activities end.
 *
 * A deletion spans many streams. From the first event on the workspace is no longer visible. Then its webhooks, alert
 * rules, recurring tasks and syncs with GitHub are switched off, and each user, agent and project moves, all on their
 * own streams. The last event frees the slug. Every step may be repeated, so an interrupted deletion can be resumed: by
 * the same request, sent again, or by the schedule. The schedule also finds records that came into the workspace at the
 * last moment.
 */
import { countAgents } from '../../queries/agents/agents.ts';
import type { Reads } from '../../queries/reads.ts';
import {
  type ActiveKind,
  activeIn,
  agentsToMove,
  projectsToMove,
  usersToMove,
} from '../../queries/workspaces/removal.ts';
import { AppError, invalid, unlessBehind } from '../../shared/errors.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { tenantStream } from '../../shared/events/super/tenants.ts';
import { workspaceDeleted, workspaceRemovalBegun } from '../../shared/events/workspaces/workspaces.ts';
import type { DeletionParts } from '../agents/changes.ts';
import { moveAgent } from '../agents/moves.ts';
import { decideDisable as disableRule, ruleDecider, ruleStream } from '../alerts/rules.ts';
import { claimPlace, decideMove } from '../auth/changes.ts';
import { type AdminsOf, changeUser } from '../auth/last-admin.ts';
import { isTaken } from '../claims.ts';
import type { CommandContext } from '../handler.ts';
import { executeWithNames } from '../naming.ts';
import { moveProject } from '../projects/moves.ts';
import { decideStopSync, projectDecider, projectStream } from '../projects/projects.ts';
import { existing, type TenantState, tenantDecider } from '../super/tenants.ts';
import { decideStopRecurring } from '../tasks/changes.ts';
import { taskDecider, taskStream } from '../tasks/tasks.ts';
import { decideDisable as disableWebhook, webhookDecider, webhookStream } from '../webhooks/webhooks.ts';
import { namedTenant, workspaceOf } from './workspaces.ts';

export interface RemovalParts extends DeletionParts {
  readonly reads: Reads;
  readonly admins: AdminsOf;
}

/** How long one request moves records, milliseconds; the scheduled task moves the rest. */
const REQUEST_MS = 15_000;

/** No event if the deletion has already begun: it is resumed. @throws AppError 400 for the main workspace, 404 */
export function decideBeginRemoval(state: TenantState, id: number, agents: number): EventDraft[] {
  if (state.workspaces.get(id)?.removal) return [];
  const { name, slug } = workspaceOf(state, id);
  if (id === state.main_workspace)
    throw invalid('This is the main workspace of the tenant, which cannot be deleted; delete another one.');
  const movesTo = state.main_workspace;
  return [workspaceRemovalBegun.draft({ ...existing(state), workspace_id: id, name, slug, moves_to: movesTo, agents })];
}

/** No event when the deletion has already ended. */
export function decideEndRemoval(state: TenantState, id: number): EventDraft[] {
  const known = state.workspaces.get(id);
  if (!known?.removal) return [];
  const { name, slug, removal } = known;
  return [workspaceDeleted.draft({ ...existing(state), workspace_id: id, name, slug, ...removal })];
}

export interface Removed {
  readonly name: string;
  readonly moves_to: number;
}

/** Deletes a workspace of the caller's tenant. A very large one may still be moving when this resolves. @throws AppError 400, 404 */
export async function deleteWorkspace(parts: RemovalParts, context: CommandContext, id: number): Promise<Removed> {
  const { commands, reads } = parts;
  const { tenant } = context.origin;
  const deadline = Date.now() + REQUEST_MS;
  // Refused before the read models are queried, which cannot tell that the id is unknown.
  decideBeginRemoval((await commands.load(tenantDecider, tenantStream(tenant))).state, id, 0);
  const agents = await countAgents(reads, id);
  // As of the decision.
  let removed: Removed = { name: '', moves_to: 0 };
  await commands.execute(tenantDecider, tenantStream(tenant), context, (state) => {
    const drafts = decideBeginRemoval(state, id, agents);
    removed = { name: state.workspaces.get(id)?.name ?? '', moves_to: state.main_workspace };
    return drafts;
  });
  const { moves_to } = removed;
  await unlessBehind(goOnRemoving(parts, { origin: context.origin }, { workspace: id, moves_to }, deadline));
  return removed;
}

/** Moves one after another, or switches them off, until none is left. @returns whether none is left */
async function doAll<T>(
  some: () => Promise<readonly T[]>,
  act: (one: T) => Promise<unknown>,
  deadline: number,
): Promise<boolean> {
  for (;;) {
    const found = await some();
    if (found.length === 0) return true;
    for (const one of found) {
      if (Date.now() >= deadline) return false;
      await act(one);
    }
  }
}

/** Ends the automatic activities of a workspace. @returns whether none is left */
async function switchOff({ commands, reads }: RemovalParts, from: CommandContext, deadline: number): Promise<boolean> {
  const { workspace } = from.origin;
  const active = (kind: ActiveKind) => () => activeIn(reads, workspace, kind);
  return (
    (await doAll(
      active('webhooks'),
      (id) => commands.execute(webhookDecider, webhookStream(workspace, id), from, disableWebhook),
      deadline,
    )) &&
    (await doAll(
      active('rules'),
      (id) => commands.execute(ruleDecider, ruleStream(workspace, id), from, disableRule),
      deadline,
    )) &&
    (await doAll(
      active('recurring tasks'),
      (id) => commands.execute(taskDecider, taskStream(workspace, id), from, decideStopRecurring),
      deadline,
    )) &&
    (await doAll(
      active('synced projects'),
      (id) => commands.execute(projectDecider, projectStream(workspace, id), from, decideStopSync),
      deadline,
    ))
  );
}

const unlessTaken = (error: unknown): void => {
  if (!isTaken(error)) throw error;
};
const unlessGone = (error: unknown): void => {
  if (!(error instanceof AppError && error.status === 404)) throw error;
};

/**
 * Resumes a deletion: ends what is active, moves the remaining records, and ends the deletion when none is left.
 *
 * @param deadline Unix ms
 */
export async function goOnRemoving(
  parts: RemovalParts,
  { origin }: CommandContext,
  { workspace, moves_to: movesTo }: { readonly workspace: number; readonly moves_to: number },
  deadline: number,
): Promise<void> {
  const { commands, reads, admins } = parts;
  const { tenant } = origin;
  const there = { tenant, workspace: movesTo };
  const from = { origin: { ...origin, workspace } };
  const moveUser = async (userId: number) => {
    const context = { origin: { ...origin, workspace: movesTo } };
    // If an agent there has the same name, both keep it, because the user must have a workspace.
    await claimPlace(commands, context, userId, movesTo).catch(unlessTaken);
    await changeUser(commands, context, admins, userId, (state) =>
      // An admin may have moved the user elsewhere in the meantime.
      state.exists && state.workspace !== workspace ? [] : decideMove(state, userId, there),
    ).catch(unlessGone);
  };
  const isEmpty =
    (await switchOff(parts, from, deadline)) &&
    (await doAll(() => usersToMove(reads, workspace), moveUser, deadline)) &&
    (await doAll(
      () => projectsToMove(reads, workspace, movesTo),
      (project) => moveProject(commands, from, movesTo, project),
      deadline,
    )) &&
    (await doAll(
      () => agentsToMove(reads, workspace),
      (agent) => moveAgent(parts, from, movesTo, agent),
      deadline,
    ));
  if (!isEmpty) return;
  const context = { origin: { ...origin, workspace: movesTo } };
  await executeWithNames(commands, context, namedTenant, tenantStream(tenant), [], (state) =>
    decideEndRemoval(state, workspace),
  );
}
