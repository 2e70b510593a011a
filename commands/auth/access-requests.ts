/**
 * Access requests: what happens when a person who is not an approved user signs in with Google.
 *
 * One request per Google account. The account's subject is claimed as a name, hashed, so that two simultaneous sign-ins
 * create a single request and the log does not name the account.
 */
import { createHash } from 'node:crypto';
import { AppError, invalid, notFound } from '../../shared/errors.ts';
import {
  accessRequestApproved,
  accessRequested,
  accessRequestRejected,
  accessRequestStream,
} from '../../shared/events/auth/access-requests.ts';
import { personErased } from '../../shared/events/auth/people.ts';
import { userStream, userUpdated } from '../../shared/events/auth/users.ts';
import { nameClaimVoided } from '../../shared/events/claims.ts';
import { type EventDraft, firstOf } from '../../shared/events/define.ts';
import type { Role } from '../../shared/identity.ts';
import { cleanDisplayName, derivedNameFault, userNameFault } from '../../shared/names.ts';
import type { GoogleProfile } from '../../shared/ports/auth/google.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import { claimName, isTaken, type NameKind } from '../claims.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { isNameOfAnother } from '../names.ts';
import { reserveId } from '../record-ids.ts';
import { fromGoogle } from './google.ts';
import { type AdminsOf, changeUser, needAnotherAdmin, removesAdmin } from './last-admin.ts';
import { createUser, releaseUsername } from './registration.ts';
import {
  differing,
  inWorkspace,
  mustExist,
  NEW_USER,
  USER_EXISTS,
  type UserState,
  userDecider,
  withoutAddress,
} from './users.ts';

export interface AccessRequestState {
  readonly status: 'none' | 'pending' | 'approved' | 'rejected';
  readonly voided: boolean;
  readonly email: string | null;
  readonly display_name: string | null;
  readonly avatar_url: string | null;
  readonly provider_id: string | null;
  /** The user id of the approval; it is reserved before the user exists. */
  readonly user_id: number | null;
  /** The role in the last approval. */
  readonly role: Role | null;
  /** The person's key was deleted: the account gets a new request at its next sign-in. */
  readonly erased: boolean;
}

export const accessRequestDecider = defineDecider<AccessRequestState>({
  kind: 'access request',
  initial: {
    status: 'none',
    voided: false,
    email: null,
    display_name: null,
    avatar_url: null,
    provider_id: null,
    user_id: null,
    role: null,
    erased: false,
  },
  folds: [
    on(accessRequested, (state, { data: { email, display_name, avatar_url, provider_id } }) => ({
      ...state,
      status: 'pending',
      email,
      display_name,
      avatar_url,
      provider_id,
    })),
    on(accessRequestApproved, (state, { data: { user_id, role } }) => ({
      ...state,
      status: 'approved',
      user_id,
      role,
    })),
    on(accessRequestRejected, (state) => ({ ...state, status: 'rejected' })),
    on(personErased, (state) => ({
      ...state,
      email: null,
      display_name: null,
      avatar_url: null,
      provider_id: null,
      erased: true,
    })),
    on(nameClaimVoided, (state) => ({ ...state, voided: true })),
  ],
});

const googleAccounts: NameKind<AccessRequestState> = {
  kind: 'google_account',
  owner: accessRequestDecider,
  holds: (state) => (state.erased ? 'never' : state.status !== 'none' ? 'yes' : state.voided ? 'never' : 'not yet'),
  taken: () => 'This account has asked for access already.',
};

const accountName = (sub: string) => createHash('sha256').update(`google\n${sub}`).digest('hex');

export function decideRequest(
  state: AccessRequestState,
  requestId: number,
  profile: GoogleProfile,
): readonly EventDraft[] {
  if (state.voided || state.erased) throw new AppError(409, googleAccounts.taken(''));
  const { email, name, picture, sub } = profile;
  return [
    accessRequested.draft({
      request_id: requestId,
      provider: 'google',
      email,
      display_name: name,
      avatar_url: picture,
      provider_id: sub,
    }),
  ];
}

/**
 * Records an attempt to sign in: it makes the account's request pending, or pending again.
 *
 * @param known id of the account's earlier request, according to the read model
 */
export async function requestAccess(
  commands: Commands,
  context: CommandContext,
  known: number | undefined,
  profile: GoogleProfile,
): Promise<void> {
  const id = known ?? (await reserveId(commands, context, 'access_request', accessRequestStream));
  const stream = accessRequestStream(id);
  if (known === undefined) {
    try {
      await claimName(commands, withoutAddress(context), googleAccounts, 'all', accountName(profile.sub), stream);
    } catch (error) {
      // Another attempt of the same account runs at the same time, and counts for both.
      if (isTaken(error)) return;
      throw error;
    }
  }
  await commands.execute(accessRequestDecider, stream, context, (state) => decideRequest(state, id, profile));
}

/** @param userId the user that the account holder is or will become */
export function decideApprove(
  state: AccessRequestState,
  requestId: number,
  userId: number,
  role: Role,
  note: string | null,
): readonly EventDraft[] {
  if (state.status === 'none') throw notFound('Access request');
  return [accessRequestApproved.draft({ request_id: requestId, email: state.email, role, user_id: userId, note })];
}

export function decideReject(state: AccessRequestState, requestId: number, note: string | null): readonly EventDraft[] {
  if (state.status === 'none') throw notFound('Access request');
  return [accessRequestRejected.draft({ request_id: requestId, email: state.email, note })];
}

/** Approves the request of a person who already is a user. @param callerId 0 unless the caller is a user */
export function decideApproval(
  state: UserState,
  userId: number,
  profile: GoogleProfile,
  role: Role,
  callerId: number,
): readonly EventDraft[] {
  mustExist(state, 'all');
  if (callerId === userId && role !== state.role) {
    throw invalid('This is your own account, and you cannot change your own role; ask another admin.');
  }
  const changes = differing(state, { ...fromGoogle(profile), role, is_approved: true });
  if (Object.keys(changes).length === 0) return [];
  return [
    userUpdated.draft({
      user_id: userId,
      username: state.username,
      ...changes,
      password_changed: false,
      by: 'access_request',
    }),
  ];
}

/** Rejects a request. An existing user of that person stays unchanged. @throws AppError 404 */
export const rejectAccess = (
  commands: Commands,
  context: CommandContext,
  { id, note }: { readonly id: number; readonly note: string | null },
) => commands.execute(accessRequestDecider, accessRequestStream(id), context, (state) => decideReject(state, id, note));

/** What an approval reads. */
export interface ApprovalReads {
  readonly admins: AdminsOf;
  /** Id of the user with this Google account or this e-mail address, according to the read model. */
  readonly userIdOf: (sub: string, email: string) => Promise<number | undefined>;
}

/**
 * Approves a request: first its stream names the user, then that user is created or updated. If the process dies in
 * between, approving again completes it. Concurrent approvals all name the same user, and the role in the last one
 * counts.
 *
 * @param request.callerId user id of the approver; 0 unless it is a user
 * @returns the user's id
 * @throws AppError 400 if it would change the caller's own role, 404, 409 for the last admin or an erased person
 */
export async function approveAccess(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
  { admins, userIdOf }: ApprovalReads,
  request: {
    readonly id: number;
    readonly role: Role;
    readonly note: string | null;
    readonly callerId: number;
  },
): Promise<number> {
  const { id, role, note, callerId } = request;
  const { state } = await commands.load(accessRequestDecider, accessRequestStream(id));
  if (state.status === 'none') throw notFound('Access request');
  const profile = profileOf(state);
  const earlier = state.user_id === null ? undefined : await reusable(commands, state.user_id);
  const known = await userIdOf(profile.sub, profile.email);
  const candidate = known ?? earlier ?? (await commands.counters.take('user'));
  // An approval that is certain to fail must not be recorded.
  const { state: user } = await commands.load(userDecider, userStream(candidate));
  if (user.exists && removesAdmin(user, decideApproval(user, candidate, profile, role, callerId))) {
    await needAnotherAdmin(commands, admins, user.tenant, candidate);
  }
  const executed = await commands.execute(accessRequestDecider, accessRequestStream(id), context, (current) => {
    // Another approval has been recorded since the load, and it has named the user.
    const userId = current.user_id !== null && current.user_id !== state.user_id ? current.user_id : candidate;
    return decideApprove(current, id, userId, role, note);
  });
  const userId = firstOf(executed.events, accessRequestApproved)?.data.user_id ?? candidate;
  const { state: now } = await commands.load(userDecider, userStream(userId));
  const isNew = !now.exists && (await createWithFreeName(commands, context, credentials, userId, profile, role));
  if (isNew) return userId;
  // If another approval has followed, its role counts.
  const { state: latest } = await commands.load(accessRequestDecider, accessRequestStream(id));
  const lastRole = (latest.user_id === userId && latest.role) || role;
  const { state: existing } = await commands.load(userDecider, userStream(userId));
  await changeUser(commands, inWorkspace(context, existing), admins, userId, (current) =>
    decideApproval(current, userId, profile, lastRole, callerId),
  );
  return userId;
}

/** The user id of an earlier approval, unless that user was deleted or can no longer be created. */
async function reusable(commands: Commands, userId: number): Promise<number | undefined> {
  const { state } = await commands.load(userDecider, userStream(userId));
  return state.deleted || state.voided ? undefined : userId;
}

function profileOf(state: AccessRequestState): GoogleProfile {
  const { email, provider_id: providerId, display_name: displayName, avatar_url: avatarUrl } = state;
  if (email === null || providerId === null) {
    throw new AppError(409, 'The person behind this request was erased; they have to sign in again first.');
  }
  return { email, sub: providerId, name: cleanDisplayName(displayName ?? ''), picture: avatarUrl };
}

/** @returns false when another approval has created the user in the meantime. @throws AppError 409 */
async function createWithFreeName(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
  id: number,
  profile: GoogleProfile,
  role: Role,
): Promise<boolean> {
  const { email, name, picture: avatar_url, sub: provider_id } = profile;
  const shown = name ?? email;
  const isAnothers = await isNameOfAnother(commands, NEW_USER.workspace, shown, userStream(id));
  return withFreeName(usernameFrom([email]), async (username) => {
    const display_name = isAnothers ? username : shown;
    const account = { provider: 'google', provider_id, email, display_name, avatar_url } as const;
    const user = { ...NEW_USER, ...account, username, role, source: 'access_request' } as const;
    try {
      await createUser(commands, context, credentials, user, null, { id });
      return true;
    } catch (error) {
      if (!(error instanceof AppError) || error.extras.code !== USER_EXISTS) throw error;
      const { state } = await commands.load(userDecider, userStream(id));
      // The other approval may have chosen another name.
      if (state.username !== username) await releaseUsername(commands, context, user, userStream(id));
      return false;
    }
  });
}

/**
 * The username of an account from elsewhere: the first of its names that may be one, or `user`. `Ann.Lee+x@example.com`
 * gives `ann.leex`. A reserved name gets no suffix, because `aegis-1` would still look like the service.
 */
export const usernameFrom = (names: readonly string[]): string =>
  names.map(plain).find((name) => name !== '' && derivedNameFault(name) === undefined) ?? 'user';

const plain = (name: string): string =>
  (name.split('@')[0] ?? '')
    .toLowerCase()
    .replace(/[^a-z0-9._-]/g, '')
    .slice(0, 28);

export const withSuffix = (base: string, suffix: number): string =>
  suffix === 0 ? base : `${base.slice(0, 24)}-${suffix}`;

/** How many suffixes are tried. */
const MAX_SUFFIX = 200;

/** Creates a user under this name, with a suffix if it is not allowed or taken. @throws AppError 409 after many names */
export async function withFreeName<T>(base: string, create: (username: string) => Promise<T>): Promise<T> {
  for (let suffix = 0; ; suffix++) {
    const username = withSuffix(base, suffix);
    if (userNameFault(username) !== undefined && suffix < MAX_SUFFIX) continue;
    try {
      return await create(username);
    } catch (error) {
      if (!isTaken(error) || suffix >= MAX_SUFFIX) throw error;
    }
  }
}
