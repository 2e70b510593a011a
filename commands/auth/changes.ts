/** Changes to users by admins and operators: fields, password, workspace, deletion. */
import { conflict, invalid, isRefusal } from '../../shared/errors.ts';
import {
  userDeleted,
  userMoved,
  userPasswordChanged,
  userStream,
  userTransferred,
  userUpdated,
} from '../../shared/events/auth/users.ts';
import { type EventDraft, firstOf } from '../../shared/events/define.ts';
import type { Role } from '../../shared/identity.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import { claimName } from '../claims.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { refuseNameOfAnother, userNameClaims } from '../names.ts';
import { RELEASED_AFTER_MS } from '../naming.ts';
import type { Place } from '../workspaces/workspaces.ts';
import { type AdminsOf, changeUser } from './last-admin.ts';
import { releaseUsername, removeUnnamedPasswords } from './registration.ts';
import { checkDisplayName, differing, mustExist, type Reach, type UserState, userDecider } from './users.ts';

/** Fields that an update may set; undefined leaves a field unchanged. */
export interface UserChanges {
  readonly display_name?: string | undefined;
  readonly email?: string | null | undefined;
  readonly avatar_url?: string | null | undefined;
  readonly role?: Role | undefined;
  readonly is_approved?: boolean | undefined;
}

export interface Transfer {
  readonly to: Place;
  readonly reach: Reach;
}

interface UpdateRequest {
  readonly user_id: number;
  /** The caller's workspace, whose users the caller may change. `all`: for operators and the deployment itself. */
  readonly workspace: number | 'all';
  /** The target workspace, and which users may be moved there. Undefined: no move. */
  readonly transfer?: Transfer | undefined;
  /** The caller's own user id; 0 unless the caller is a user. */
  readonly callerId: number;
  readonly changes: UserChanges;
  /** Credential id of the new password; null leaves the password unchanged. */
  readonly credential_id: string | null;
  readonly by: 'admin' | 'cli';
}

export function decideUpdate(state: UserState, request: UpdateRequest): readonly EventDraft[] {
  const { user_id, workspace, transfer, callerId, credential_id, by } = request;
  mustExist(state, transfer?.reach ?? workspace);
  const changes = differing(state, request.changes);
  if (changes.display_name !== undefined) checkDisplayName(changes.display_name, state.username);
  if (callerId === user_id && changes.role !== undefined) {
    throw invalid('You cannot change your own role; ask another admin.');
  }
  if (callerId === user_id && changes.is_approved === false) {
    throw invalid('You cannot disable your own account; ask another admin.');
  }
  const user = { user_id, username: state.username };
  const passwordChanged = credential_id !== null;
  const isUpdated = Object.keys(changes).length > 0 || passwordChanged;
  const isElsewhere = workspace !== 'all' && state.workspace !== workspace;
  if (isElsewhere && isUpdated)
    throw invalid('This user is in another workspace: only workspace_id can be changed from yours.');
  const isMoved = transfer !== undefined && transfer.to.workspace !== state.workspace;
  if (isMoved && callerId === user_id)
    throw invalid('You cannot put your own account into another workspace; ask another admin.');
  return [
    ...(isUpdated ? [userUpdated.draft({ ...user, ...changes, password_changed: passwordChanged, by })] : []),
    ...(credential_id === null ? [] : [userPasswordChanged.draft({ ...user, credential_id, by })]),
    ...(isMoved ? [userTransferred.draft({ ...user, ...transfer.to })] : []),
  ];
}

export function decideDelete(state: UserState, userId: number, reach: Reach, callerId: number): readonly EventDraft[] {
  mustExist(state, reach);
  if (callerId === userId) throw invalid('You cannot delete your own account; ask another admin.');
  return [userDeleted.draft({ user_id: userId, username: state.username })];
}

export function decideMove(state: UserState, userId: number, place: Place): readonly EventDraft[] {
  mustExist(state, 'all');
  if (state.workspace === place.workspace) return [];
  return [userMoved.draft({ user_id: userId, username: state.username, ...place })];
}

/** Updates a user, and puts them into another workspace. A new password ends all sessions, and so does disabling the user. @throws AppError 400, 404, 409 for the last admin */
export async function updateUser(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
  admins: AdminsOf,
  request: {
    readonly user_id: number;
    readonly workspace: number | 'all';
    readonly transfer?: Transfer | undefined;
    readonly callerId: number;
    readonly changes: UserChanges;
    readonly password: string | null;
    readonly by: 'admin' | 'cli';
  },
): Promise<Executed> {
  const { user_id, password, changes, ...rest } = request;
  const decide = (credentialId: string | null) => (state: UserState) =>
    decideUpdate(state, { ...rest, user_id, changes, credential_id: credentialId });
  // Decide first, so that a refusal needs no slow hash and no claim of a name.
  const { state: before } = await commands.load(userDecider, userStream(user_id));
  if (password !== null || rest.transfer) decide(null)(before);
  const displayName = changes.display_name ?? before.display_name;
  const workspace = rest.transfer?.to.workspace ?? before.workspace;
  if (
    before.exists &&
    displayName !== null &&
    (displayName !== before.display_name || workspace !== before.workspace)
  ) {
    if (changes.display_name !== undefined) checkDisplayName(displayName, before.username);
    await refuseNameOfAnother(commands, workspace, displayName, userStream(user_id));
  }
  const credentialId = password === null ? null : await credentials.addPassword(user_id, password);
  let executed: Executed;
  try {
    const mayMove = await claimPlace(commands, context, user_id, rest.transfer?.to.workspace);
    const decided = decide(credentialId);
    executed = await changeUser(commands, context, admins, user_id, (state) => {
      const drafts = decided(state);
      mayMove(state);
      return drafts;
    });
  } catch (error) {
    if (credentialId !== null && isRefusal(error)) await removeUnnamedPasswords(commands, credentials, user_id);
    throw error;
  }
  if (credentialId !== null) await credentials.removePasswords(user_id, credentialId);
  if (credentialId !== null || changes.is_approved === false) await credentials.removeSessions(user_id);
  return executed;
}

/**
 * Claims the user's name in the target workspace, where an agent may have it. Undefined: no move.
 *
 * @returns a check of the user's state: throws AppError 409 when the claim is no longer valid
 * @throws AppError 409 `NAME_TAKEN` when an agent there has the name, `BUSY` when one is getting it
 */
export async function claimPlace(
  commands: Commands,
  context: CommandContext,
  userId: number,
  workspace: number | undefined,
): Promise<(state: UserState) => void> {
  const stream = userStream(userId);
  const { state: before } = await commands.load(userDecider, stream);
  if (workspace === undefined || !before.exists || before.workspace === workspace) return () => undefined;
  // Claims may be repeated safely, so they need no intents.
  for (const { kind, scope, name, shown } of userNameClaims(workspace, before.username))
    await claimName(commands, { origin: context.origin }, kind, scope, name, stream, shown);
  const lost = () => conflict('Another user or agent is taking this name right now; try again.', { code: 'BUSY' });
  // The process that voided the earlier claim may be about to take the name, despite this claim.
  if (Date.now() - before.placeVoidedAt < RELEASED_AFTER_MS) throw lost();
  return (state) => {
    if (state.workspace !== workspace && state.placeVoidedAt !== before.placeVoidedAt) throw lost();
  };
}

/** Deletes a user: ends the sessions, removes the password, frees the name. @throws AppError 400, 404, 409 for the last admin */
export async function deleteUser(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
  admins: AdminsOf,
  request: { readonly user_id: number; readonly reach: Reach; readonly callerId: number },
): Promise<void> {
  const { user_id: userId, reach, callerId } = request;
  const stream = userStream(userId);
  let last = 0;
  const executed = await changeUser(commands, context, admins, userId, (state) => {
    last = state.workspace;
    return decideDelete(state, userId, reach, callerId);
  });
  const deleted = firstOf(executed.events, userDeleted);
  if (deleted) await releaseUsername(commands, context, { ...deleted.data, workspace: last }, stream);
  await credentials.removeSessions(userId);
  await credentials.removePasswords(userId);
}
