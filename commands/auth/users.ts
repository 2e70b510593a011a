/**
 * Users: their state and their unique names. How they are created is in `registration.ts`; decisions on existing users are
 * in `changes.ts`, `profile.ts`, `google.ts` and `access-requests.ts`.
 */
import { conflict, invalid, notFound } from '../../shared/errors.ts';
import { adminRemovalVoided } from '../../shared/events/auth/last-admin.ts';
import { personErased } from '../../shared/events/auth/people.ts';
import {
  googleDisconnected,
  type Provider,
  userCreated,
  userDeleted,
  userMoved,
  userPasswordChanged,
  userTransferred,
  userUpdated,
} from '../../shared/events/auth/users.ts';
import { nameClaimVoided } from '../../shared/events/claims.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE, type Origin } from '../../shared/events/metadata.ts';
import type { Role } from '../../shared/identity.ts';
import { displayNameFault } from '../../shared/names.ts';
import { claimantOf, type NameKind } from '../claims.ts';
import { defineDecider, on } from '../decider.ts';
import { type CommandContext, type Commands, originWith } from '../handler.ts';

export interface UserState {
  readonly exists: boolean;
  readonly deleted: boolean;
  /** The name intended for this user went to another one, so this user must no longer be created. */
  readonly voided: boolean;
  readonly username: string;
  readonly display_name: string | null;
  readonly email: string | null;
  readonly avatar_url: string | null;
  readonly role: Role;
  readonly provider: Provider;
  readonly provider_id: string | null;
  readonly is_approved: boolean;
  readonly tenant: number;
  readonly workspace: number;
  /** The tenants that the user has been in. */
  readonly tenants: readonly number[];
  readonly credential_id: string | null;
  /** When a claim of the user's name in a workspace they were not moved to was last voided; Unix ms, 0: never. */
  readonly placeVoidedAt: number;
  /** How many turns to remove this user as an admin have ended: completed or voided (`last-admin.ts`). */
  readonly turns: number;
  /** The person's key was deleted. */
  readonly erased: boolean;
}

/** Whether this user is an enabled admin of the tenant. */
export const isAdminOf = (state: UserState, tenant: number): boolean =>
  state.exists && state.is_approved && state.role === 'admin' && state.tenant === tenant;

/** A change that removes the tenant's enabled admin ends a turn. */
const turnsCounted = (before: UserState, after: UserState): UserState =>
  isAdminOf(before, before.tenant) && !isAdminOf(after, before.tenant) ? { ...after, turns: after.turns + 1 } : after;

export const userDecider = defineDecider<UserState>({
  kind: 'user',
  initial: {
    exists: false,
    deleted: false,
    voided: false,
    username: '',
    display_name: null,
    email: null,
    avatar_url: null,
    role: 'viewer',
    provider: 'local',
    provider_id: null,
    is_approved: false,
    tenant: 0,
    workspace: 0,
    tenants: [],
    credential_id: null,
    placeVoidedAt: 0,
    turns: 0,
    erased: false,
  },
  folds: [
    on(userCreated, (state, { data: { user_id: _, source: __, ...fields } }) => ({
      ...state,
      ...fields,
      tenants: [fields.tenant],
      exists: true,
    })),
    on(userUpdated, (state, { data: { user_id: _, username: __, password_changed: ___, by: ____, ...changes } }) =>
      turnsCounted(state, { ...state, ...changes }),
    ),
    on(userPasswordChanged, (state, { data }) => ({ ...state, credential_id: data.credential_id })),
    on(googleDisconnected, (state) => ({ ...state, provider: 'local', provider_id: null })),
    on([userMoved, userTransferred], (state, { data: { tenant, workspace } }) =>
      turnsCounted(state, { ...state, tenant, workspace, tenants: [...new Set([...state.tenants, tenant])] }),
    ),
    on(userDeleted, (state) => turnsCounted(state, { ...state, exists: false, deleted: true })),
    on(personErased, (state) => ({
      ...state,
      display_name: null,
      email: null,
      avatar_url: null,
      provider_id: null,
      erased: true,
    })),
    on(adminRemovalVoided, (state) => ({ ...state, turns: state.turns + 1 })),
    on(nameClaimVoided, (state, { at }) =>
      state.exists ? { ...state, placeVoidedAt: at } : { ...state, voided: true },
    ),
  ],
});

/** The 409 message. */
export const usernameTaken = (name: string): string => `The username "${name}" is taken; choose another one.`;

/**
 * The right to be the first admin, as a unique name: the seeded admin and the first-run setup must claim it, and any
 * other first user claims it too. It is never released, not even when the user is deleted: a deployment is set up once.
 */
export const firstAdmin: NameKind<UserState> = {
  kind: 'first_admin',
  owner: userDecider,
  holds: ({ exists, deleted, voided }) => (exists || deleted ? 'yes' : voided ? 'never' : 'not yet'),
  taken: () => 'Another user has just set up this deployment; sign in instead.',
};
export const FIRST_ADMIN_NAME = 'first';

/** Whether there has ever been a user, according to the log. */
export async function hasFirstAdmin(commands: Pick<Commands, 'load'>): Promise<boolean> {
  const stream = await claimantOf(commands, firstAdmin, 'all', FIRST_ADMIN_NAME);
  return (
    stream !== undefined &&
    firstAdmin.holds((await commands.load(userDecider, stream)).state, FIRST_ADMIN_NAME, 'all') === 'yes'
  );
}

/** Code of a refusal after which this user id cannot be used any more. */
export const NAME_LOST = 'NAME_LOST';
/** Code of a refusal because the user exists already, through an earlier or a concurrent approval. */
export const USER_EXISTS = 'USER_EXISTS';

export type NewUser = Omit<EventOf<typeof userCreated>['data'], 'user_id' | 'credential_id'>;

/** The fields of a new user that most have. */
export const NEW_USER = {
  email: null,
  avatar_url: null,
  provider: 'local',
  provider_id: null,
  is_approved: true,
  tenant: DEFAULT_TENANT,
  workspace: DEFAULT_WORKSPACE,
} as const;

export function decideCreate(
  state: UserState,
  userId: number,
  user: NewUser,
  credentialId: string | null,
): readonly EventDraft[] {
  if (state.exists) throw conflict(`There is already a user ${userId}.`, { code: USER_EXISTS });
  if (state.deleted) throw conflict(`The user ${userId} was deleted; its id is never reused.`);
  if (state.voided) throw conflict(usernameTaken(user.username), { code: NAME_LOST });
  return [userCreated.draft({ ...user, user_id: userId, credential_id: credentialId })];
}

/** @throws AppError 400 for a name that this user may not be shown under */
export function checkDisplayName(name: string, username: string): void {
  const fault = displayNameFault(name, username);
  if (fault !== undefined) throw invalid(`display_name: ${fault}`, [`display_name: ${fault}`]);
}

/** Users that a caller may find: those of a workspace, of a tenant, or all. */
export type Reach = number | { readonly tenant: number } | 'all';

const isWithin = (reach: Reach, { workspace, tenant }: UserState): boolean =>
  reach === 'all' || (typeof reach === 'number' ? reach === workspace : reach.tenant === tenant);

/** @throws AppError 404 unless the user exists and the caller may see them */
export function mustExist(state: UserState, reach: Reach): void {
  if (!state.exists || !isWithin(reach, state)) throw notFound('User');
}

/** The changes that have an effect. */
export function differing<T extends object>(state: UserState, changes: T): Partial<T> {
  const entries = Object.entries(changes).filter(
    ([field, value]) => value !== undefined && state[field as keyof UserState] !== value,
  );
  return Object.fromEntries(entries) as Partial<T>;
}

/**
 * A user for whom a request is recorded although it does not carry their credential yet, because they are signing in.
 */
export interface KnownUser {
  readonly id: number;
  readonly username: string;
  readonly tenant: number;
  readonly workspace: number;
}

/**
 * The same request with another origin. Both share one step counter, so that a repeated request finds its own steps.
 */
export const withOrigin = (context: CommandContext, origin: Partial<Origin>): CommandContext => ({
  origin: originWith(context.origin, origin),
  ...(context.intents && { intents: context.intents }),
  get step() {
    return context.step;
  },
  set step(value) {
    context.step = value;
  },
});

/** The same request, recorded as an act of `user`. */
export const asUser = (context: CommandContext, { id, username, tenant, workspace }: KnownUser): CommandContext =>
  withOrigin(context, { tenant, workspace, actor: { type: 'user', id, name: username } });

/** The same request, recorded without the client address, for events where no person's key could seal the address. */
export const withoutAddress = (context: CommandContext) => withOrigin(context, { ip: null });

/** The same request, recorded in another workspace: that of the record that it changes. */
export const inWorkspace = (context: CommandContext, { tenant, workspace }: Pick<Origin, 'tenant' | 'workspace'>) =>
  withOrigin(context, { tenant, workspace });
