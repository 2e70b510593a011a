/** Decisions about users: who exists, what they are called, what they may do. Pure; `users.ts` next to it carries them out. */
import { AppError, conflict, forbidden, invalid, notFound } from '../../shared/errors.ts';
import {
  adminRemovalVoided,
  googleDisconnected,
  type Provider,
  userCreated,
  userDeleted,
  userMoved,
  userPasswordChanged,
  userUpdated,
} from '../../shared/events/auth/users.ts';
import { nameClaimVoided } from '../../shared/events/claims.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import type { Role } from '../../shared/identity.ts';
import type { NameKind } from '../claims.ts';
import type { Decider, Evolving } from '../decider.ts';

export interface UserState {
  readonly exists: boolean;
  readonly deleted: boolean;
  /** Somebody else took a name that this user was about to have: it must not be created any more. */
  readonly voided: boolean;
  readonly username: string;
  readonly displayName: string | null;
  readonly email: string | null;
  readonly avatarUrl: string | null;
  readonly role: Role;
  readonly provider: Provider;
  readonly providerId: string | null;
  readonly isApproved: boolean;
  readonly tenant: number;
  readonly workspace: number;
  readonly credentialId: string | null;
  /** Turns at ending this user as an admin that have come to their end: it happened, or was voided (`last-admin.ts`). */
  readonly turns: number;
}

/** Whether the tenant has an enabled admin in this user. */
export const isAdminOf = (state: UserState, tenant: number): boolean =>
  state.exists && state.isApproved && state.role === 'admin' && state.tenant === tenant;

export const userDecider: Decider<UserState> = {
  kind: 'user',
  initial: {
    exists: false,
    deleted: false,
    voided: false,
    username: '',
    displayName: null,
    email: null,
    avatarUrl: null,
    role: 'viewer',
    provider: 'local',
    providerId: null,
    isApproved: false,
    tenant: 0,
    workspace: 0,
    credentialId: null,
    turns: 0,
  },
  evolve(before, event) {
    const after = changed(before, event);
    const ended = isAdminOf(before, before.tenant) && !isAdminOf(after, before.tenant);
    return ended || event.type === adminRemovalVoided.type ? { ...after, turns: after.turns + 1 } : after;
  },
};

function changed(state: UserState, event: Evolving): UserState {
  switch (event.type) {
    case userCreated.type: {
      const { userId: _, source: __, ...fields } = event.data as EventOf<typeof userCreated>['data'];
      return { ...state, ...fields, exists: true };
    }
    case userUpdated.type: {
      const {
        userId: _,
        username: __,
        passwordChanged: ___,
        by: ____,
        ...changes
      } = event.data as EventOf<typeof userUpdated>['data'];
      return { ...state, ...changes };
    }
    case userPasswordChanged.type:
      return { ...state, credentialId: (event.data as EventOf<typeof userPasswordChanged>['data']).credentialId };
    case googleDisconnected.type:
      return { ...state, provider: 'local', providerId: null };
    case userMoved.type: {
      const { tenant, workspace } = event.data as EventOf<typeof userMoved>['data'];
      return { ...state, tenant, workspace };
    }
    case userDeleted.type:
      return { ...state, exists: false, deleted: true };
    case nameClaimVoided.type:
      return { ...state, voided: true };
    default:
      return state;
  }
}

const ownership =
  (holds: (state: UserState, name: string) => boolean): NameKind<UserState>['holds'] =>
  (state, name) => {
    if (state.exists) return holds(state, name) ? 'yes' : 'never';
    return state.deleted || state.voided ? 'never' : 'not yet';
  };

/** User names: case-sensitive, unique over the whole deployment. They never change. */
export const usernames: NameKind<UserState> = {
  kind: 'username',
  owner: userDecider,
  holds: ownership((state, name) => state.username === name),
  taken: (name) => `The username "${name}" is taken; choose another one.`,
};

/**
 * Who was first: the one name that the seeded admin and the first-run form both have to have, and that any other first
 * user takes away from them. It is held for good, also by a user who was deleted: a deployment is set up once.
 */
export const firstAdmin: NameKind<UserState> = {
  kind: 'first_admin',
  owner: userDecider,
  holds: ({ exists, deleted, voided }) => (exists || deleted ? 'yes' : voided ? 'never' : 'not yet'),
  taken: () => 'Somebody else has just set this deployment up; sign in instead.',
};
export const FIRST_ADMIN_NAME = 'first';

/** The code of a refusal after which this user number is of no use any more. */
export const NAME_LOST = 'NAME_LOST';
/** The code of a refusal because the user is there already, by an earlier approval or one at the same moment. */
export const USER_EXISTS = 'USER_EXISTS';

export type NewUser = Omit<EventOf<typeof userCreated>['data'], 'userId' | 'credentialId'>;

export function decideCreate(
  state: UserState,
  userId: number,
  user: NewUser,
  credentialId: string | null,
): readonly EventDraft[] {
  if (state.exists) throw conflict(`There is a user ${userId} already.`, { code: USER_EXISTS });
  if (state.deleted) throw conflict(`The user ${userId} was deleted; its number is not used again.`);
  if (state.voided) throw conflict(usernames.taken(user.username), { code: NAME_LOST });
  return [userCreated.draft({ ...user, userId, credentialId })];
}

/** What an update may set; undefined leaves a field alone. */
export interface UserChanges {
  readonly displayName?: string | undefined;
  readonly email?: string | null | undefined;
  readonly avatarUrl?: string | null | undefined;
  readonly role?: Role | undefined;
  readonly isApproved?: boolean | undefined;
}

interface UpdateRequest {
  readonly userId: number;
  /** Of the caller; users of other workspaces do not exist for them. `all`: the deployment itself asks. */
  readonly workspace: number | 'all';
  /** The caller's own user id; 0 when it is no user. */
  readonly callerId: number;
  readonly changes: UserChanges;
  /** Of the new password; null: the password stays. */
  readonly credentialId: string | null;
  readonly by: 'admin' | 'cli';
}

/** An existing user that the caller may see. @throws AppError 404 */
function seen(state: UserState, workspace: number | 'all'): void {
  if (!state.exists || (workspace !== 'all' && state.workspace !== workspace)) throw notFound('User');
}

/** Only what differs. */
function differing<T extends object>(state: UserState, changes: T): Partial<T> {
  const entries = Object.entries(changes).filter(
    ([field, value]) => value !== undefined && state[field as keyof UserState] !== value,
  );
  return Object.fromEntries(entries) as Partial<T>;
}

export function decideUpdate(state: UserState, request: UpdateRequest): readonly EventDraft[] {
  const { userId, workspace, callerId, credentialId, by } = request;
  seen(state, workspace);
  const changes = differing(state, request.changes);
  if (callerId === userId && changes.role !== undefined) {
    throw invalid('You cannot change your own role; ask another admin.');
  }
  if (callerId === userId && changes.isApproved === false) {
    throw invalid('You cannot disable your own account; ask another admin.');
  }
  const user = { userId, username: state.username };
  const passwordChanged = credentialId !== null;
  if (Object.keys(changes).length === 0 && !passwordChanged) return [];
  return [
    userUpdated.draft({ ...user, ...changes, passwordChanged, by }),
    ...(credentialId === null ? [] : [userPasswordChanged.draft({ ...user, credentialId, by })]),
  ];
}

interface ProfileRequest {
  readonly userId: number;
  readonly displayName?: string | undefined;
  /** `verified` is the credential that the given current password was right for. */
  readonly password?: { readonly verified: string; readonly credentialId: string } | undefined;
}

export function decideProfile(state: UserState, request: ProfileRequest): readonly EventDraft[] {
  const { userId, displayName, password } = request;
  seen(state, 'all');
  const user = { userId, username: state.username };
  const drafts: EventDraft[] = [];
  if (password) {
    if (state.credentialId !== password.verified) {
      throw forbidden('The current password is wrong: it was changed a moment ago.');
    }
    drafts.push(userPasswordChanged.draft({ ...user, credentialId: password.credentialId, by: 'self' }));
  }
  if (displayName !== undefined && displayName !== state.displayName) {
    drafts.push(userUpdated.draft({ ...user, displayName, passwordChanged: false, by: 'self' }));
  }
  return drafts;
}

/** What a Google account says of its holder. */
export interface GoogleProfile {
  readonly sub: string;
  /** Lower case. */
  readonly email: string;
  readonly name: string | null;
  readonly picture: string | null;
}

const fromGoogle = ({ sub, email, picture }: GoogleProfile) => ({
  provider: 'google' as const,
  providerId: sub,
  email,
  ...(picture !== null && { avatarUrl: picture }),
});

/** A Google sign-in of an approved user. @throws AppError 403 when it is not (any more) one */
export function decideGoogleSignIn(state: UserState, userId: number, profile: GoogleProfile): readonly EventDraft[] {
  if (!state.exists || !state.isApproved || state.provider !== 'google') {
    throw forbidden('This account is not approved.', { code: 'PENDING_APPROVAL' });
  }
  const changes = differing(state, fromGoogle(profile));
  if (Object.keys(changes).length === 0) return [];
  return [userUpdated.draft({ userId, username: state.username, ...changes, passwordChanged: false, by: 'google' })];
}

/** An approved access request of somebody who is a user already. @param callerId 0 when it is no user */
export function decideApproval(
  state: UserState,
  userId: number,
  profile: GoogleProfile,
  role: Role,
  callerId: number,
): readonly EventDraft[] {
  seen(state, 'all');
  if (callerId === userId && role !== state.role) {
    throw invalid('This account is your own, and nobody changes their own role; ask another admin.');
  }
  const changes = differing(state, { ...fromGoogle(profile), role, isApproved: true });
  if (Object.keys(changes).length === 0) return [];
  return [
    userUpdated.draft({ userId, username: state.username, ...changes, passwordChanged: false, by: 'access_request' }),
  ];
}

export function decideDisconnect(state: UserState, userId: number): readonly EventDraft[] {
  seen(state, 'all');
  if (state.provider !== 'google') throw invalid('This account does not sign in with Google.');
  if (state.credentialId === null) {
    throw invalid('This account has no password; have an admin set one first, or you could not sign in again.');
  }
  return [googleDisconnected.draft({ userId, username: state.username })];
}

export function decideDelete(
  state: UserState,
  userId: number,
  workspace: number | 'all',
  callerId: number,
): readonly EventDraft[] {
  seen(state, workspace);
  if (callerId === userId) throw invalid('You cannot delete your own account; ask another admin.');
  return [userDeleted.draft({ userId, username: state.username })];
}

export function decideMove(
  state: UserState,
  userId: number,
  place: { readonly tenant: number; readonly workspace: number },
): readonly EventDraft[] {
  seen(state, 'all');
  if (state.workspace === place.workspace) return [];
  return [userMoved.draft({ userId, username: state.username, ...place })];
}

/** The outcome of a command is known and nothing was written. */
export const wasRefused = (error: unknown): boolean => error instanceof AppError && error.status < 500;
