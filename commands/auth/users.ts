/**
 * Commands on users. A new password is stored in the credential store first, under a random id; then the event names
 * that id. What is left behind by a refusal, or is no longer named, is removed afterwards: it opens nothing.
 */
import { AppError, invalid } from '../../shared/errors.ts';
import {
  type SignInFailure,
  signInFailed,
  signInStream,
  userCreated,
  userDeleted,
  userPasswordChanged,
  userSignedIn,
  userSignedOut,
  userStream,
} from '../../shared/events/auth/users.ts';
import type { EventOf } from '../../shared/events/define.ts';
import type { Origin } from '../../shared/events/metadata.ts';
import { userNameFault } from '../../shared/names.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import { claimName, releaseName } from '../claims.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { reserveId } from '../reserve.ts';
import { type AdminsOf, changeUser } from './last-admin.ts';
import {
  decideCreate,
  decideDelete,
  decideDisconnect,
  decideGoogleSignIn,
  decideMove,
  decideProfile,
  decideUpdate,
  FIRST_ADMIN_NAME,
  firstAdmin,
  type GoogleProfile,
  type NewUser,
  type UserChanges,
  userDecider,
  usernames,
  wasRefused,
} from './user.ts';

/** Somebody whose act is recorded although the request's own origin does not know them: they are signing in. */
interface KnownUser {
  readonly id: number;
  readonly username: string;
  readonly tenant: number;
  readonly workspace: number;
}

/** The same request with another origin. Steps are counted together, so that a repeated request finds its own. */
const retold = (context: CommandContext, origin: Partial<Origin>): CommandContext => ({
  origin: { ...context.origin, ...origin },
  ...(context.intents && { intents: context.intents }),
  get step() {
    return context.step;
  },
  set step(value) {
    context.step = value;
  },
});

/** The same request, told as the act of `user`. */
export const asUser = (context: CommandContext, { id, username, tenant, workspace }: KnownUser): CommandContext =>
  retold(context, { tenant, workspace, actor: { type: 'user', id, name: username } });

/** The same request, told in another workspace: where the record is that it changes. */
export const inWorkspace = (context: CommandContext, { tenant, workspace }: Pick<Origin, 'tenant' | 'workspace'>) =>
  retold(context, { tenant, workspace });

const find = <D extends { readonly type: string }>(executed: Executed, definition: D): EventOf<D> | undefined =>
  executed.events.find((event) => event.type === definition.type) as EventOf<D> | undefined;

/**
 * Creates a user.
 *
 * @param password null: none, as for users who sign in elsewhere
 * @param options.first claims the right to be the first admin, too
 * @param options.id a number taken before; default: a new one
 * @returns the id
 * @throws AppError 400 for a name that nobody may take, 409 when it is taken, or somebody else was first
 */
export async function createUser(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
  user: NewUser,
  password: string | null,
  options: { readonly first?: boolean; readonly id?: number } = {},
): Promise<number> {
  const fault = userNameFault(user.username);
  if (fault !== undefined) throw invalid(`username: ${fault}`, [`username: ${fault}`]);
  const id = options.id ?? (await reserveId(commands, context, 'user', userStream));
  const stream = userStream(id);
  const credentialId = password === null ? null : await credentials.addPassword(id, password);
  const told = inWorkspace(context, user);
  try {
    if (options.first) await claimName(commands, told, firstAdmin, 'all', FIRST_ADMIN_NAME, stream);
    await claimName(commands, told, usernames, 'all', user.username, stream);
    if (!options.first) await shutSetup(commands, told, stream);
    const executed = await commands.execute(userDecider, stream, told, (state) =>
      decideCreate(state, id, user, credentialId),
    );
    const named = find(executed, userCreated)?.data.credentialId ?? credentialId;
    // A repeated request may find a password that an earlier run stored; the event says which one counts.
    if (credentialId !== null && context.intents) await credentials.removePasswords(id, named ?? undefined);
    return id;
  } catch (error) {
    if (credentialId !== null && wasRefused(error)) await credentials.removePasswords(id);
    throw error;
  }
}

/** Once anybody exists the first-run form is shut, whoever it was: another first user only takes the right to use it. */
async function shutSetup(commands: Commands, context: CommandContext, stream: string): Promise<void> {
  try {
    await claimName(commands, context, firstAdmin, 'all', FIRST_ADMIN_NAME, stream);
  } catch (error) {
    if (!(error instanceof AppError) || error.status !== 409) throw error;
  }
}

/** Changes a user for an admin. A new password, and being disabled, end all sessions. @throws AppError 400, 404, 409 for the last admin */
export async function updateUser(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
  admins: AdminsOf,
  request: {
    readonly userId: number;
    readonly workspace: number | 'all';
    readonly callerId: number;
    readonly changes: UserChanges;
    readonly password: string | null;
    readonly by: 'admin' | 'cli';
  },
): Promise<void> {
  const { userId, password, changes, ...rest } = request;
  const decide = (credentialId: string | null) => (state: Parameters<typeof decideUpdate>[0]) =>
    decideUpdate(state, { ...rest, userId, changes, credentialId });
  // Refused before the slow hash is made.
  if (password !== null) decide(null)((await commands.load(userDecider, userStream(userId))).state);
  const credentialId = password === null ? null : await credentials.addPassword(userId, password);
  try {
    await changeUser(commands, context, admins, userId, decide(credentialId));
  } catch (error) {
    if (credentialId !== null && wasRefused(error)) await removePassword(commands, credentials, userId);
    throw error;
  }
  if (credentialId !== null) await credentials.removePasswords(userId, credentialId);
  if (credentialId !== null || changes.isApproved === false) await credentials.removeSessions(userId);
}

/** Removes what the log does not name. */
async function removePassword(commands: Commands, credentials: Credentials, userId: number): Promise<void> {
  const { state } = await commands.load(userDecider, userStream(userId));
  await credentials.removePasswords(userId, state.credentialId ?? undefined);
}

/**
 * Changes the caller's own profile.
 *
 * @param request.password `verified`: the credential id that the current password was checked against
 * @returns true when the password was changed: every session of the user has ended
 * @throws AppError 403 when the password was changed meanwhile, 404 when the user is gone
 */
export async function updateProfile(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
  request: {
    readonly userId: number;
    readonly displayName?: string | undefined;
    readonly password?: { readonly verified: string; readonly next: string } | undefined;
  },
): Promise<boolean> {
  const { userId, displayName, password } = request;
  const credentialId = password && (await credentials.addPassword(userId, password.next));
  try {
    const executed = await commands.execute(userDecider, userStream(userId), context, (state) =>
      decideProfile(state, {
        userId,
        displayName,
        password: password && credentialId ? { verified: password.verified, credentialId } : undefined,
      }),
    );
    const changed = find(executed, userPasswordChanged);
    if (!changed) return false;
    await credentials.removePasswords(userId, changed.data.credentialId);
    await credentials.removeSessions(userId);
    return true;
  } catch (error) {
    if (credentialId && wasRefused(error)) await removePassword(commands, credentials, userId);
    throw error;
  }
}

/** Deletes a user: sessions end, the password is removed, the name is free. @throws AppError 400, 404, 409 for the last admin */
export async function deleteUser(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
  admins: AdminsOf,
  request: { readonly userId: number; readonly workspace: number | 'all'; readonly callerId: number },
): Promise<void> {
  const { userId, workspace, callerId } = request;
  const stream = userStream(userId);
  const executed = await changeUser(commands, context, admins, userId, (state) =>
    decideDelete(state, userId, workspace, callerId),
  );
  const deleted = find(executed, userDeleted);
  if (deleted) await releaseName(commands, context, usernames, 'all', deleted.data.username, stream);
  await credentials.removeSessions(userId);
  await credentials.removePasswords(userId);
}

/** Moves a user to another workspace. @throws AppError 404, 409 for the last admin of a tenant that is left */
export async function moveUser(
  commands: Commands,
  context: CommandContext,
  admins: AdminsOf,
  userId: number,
  place: { readonly tenant: number; readonly workspace: number },
): Promise<void> {
  await changeUser(commands, context, admins, userId, (state) => decideMove(state, userId, place));
}

/** Brings an approved Google user up to date before the sign-in. @throws AppError 403 `PENDING_APPROVAL` */
export async function refreshGoogleUser(
  commands: Commands,
  context: CommandContext,
  user: KnownUser,
  profile: GoogleProfile,
): Promise<void> {
  await commands.execute(userDecider, userStream(user.id), asUser(context, user), (state) =>
    decideGoogleSignIn(state, user.id, profile),
  );
}

/** Goes back from Google to the password. @throws AppError 400 when there is none, or it is no Google user */
export async function disconnectGoogle(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
  userId: number,
): Promise<void> {
  await commands.execute(userDecider, userStream(userId), context, (state) => decideDisconnect(state, userId));
  await credentials.removeSessions(userId);
}

export async function recordSignIn(
  commands: Commands,
  context: CommandContext,
  user: KnownUser,
  method: 'password' | 'google',
): Promise<void> {
  const { id: userId, username } = user;
  await commands.record(signInStream(userId), asUser(context, user), [
    userSignedIn.draft({ userId, username, method }),
  ]);
}

export async function recordSignOut(commands: Commands, context: CommandContext, user: KnownUser): Promise<void> {
  const { id: userId, username } = user;
  await commands.record(signInStream(userId), asUser(context, user), [userSignedOut.draft({ userId, username })]);
}

/** @param user who has the submitted name, if anybody: the attempt is told in that user's workspace */
export async function recordSignInFailure(
  commands: Commands,
  context: CommandContext,
  attempt: { readonly username: string; readonly user: KnownUser | undefined; readonly reason: SignInFailure },
): Promise<void> {
  const { username, user, reason } = attempt;
  const month = new Date().toISOString().slice(0, 7);
  await commands.record(signInStream(user?.id ?? null), user ? inWorkspace(context, user) : context, [
    signInFailed.draft({ username, userId: user?.id ?? null, reason, month }),
  ]);
}
