/**
 * Users who sign in through the OpenID Connect provider of the deployment. The provider decides who they are and, by
 * their groups, what they may do; the first sign-in creates the user.
 *
 * An account is claimed as a name, hashed, so that simultaneous first sign-ins create one user and the log does not
 * name the account.
 */
import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { FoundUser } from '../../queries/auth/users.ts';
import { forbidden } from '../../shared/errors.ts';
import { userCreated, userStream, userTransferred, userUpdated } from '../../shared/events/auth/users.ts';
import { type EventDraft, firstOf } from '../../shared/events/define.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../shared/events/metadata.ts';
import { type Role, systemActor } from '../../shared/identity.ts';
import type { AccountGroups, GroupRule, OidcProfile } from '../../shared/ports/auth/oidc.ts';
import { storableText } from '../../shared/storable.ts';
import { claimantOf, claimName, isTaken, type NameKind } from '../claims.ts';
import type { CommandContext } from '../handler.ts';
import { isNameOfAnother } from '../names.ts';
import { reserveId } from '../record-ids.ts';
import type { Place } from '../workspaces/workspaces.ts';
import { usernameFrom, withFreeName } from './access-requests.ts';
import { claimPlace } from './changes.ts';
import { changeUser } from './last-admin.ts';
import { addUser } from './registration.ts';
import type { SessionParts, SignedIn } from './sessions.ts';
import { signIn } from './sign-in.ts';
import { differing, inWorkspace, mustExist, NEW_USER, type UserState, userDecider, withOrigin } from './users.ts';

const accountName = (account: string) => createHash('sha256').update(`oidc\n${account}`).digest('hex');

const oidcAccounts: NameKind<UserState> = {
  kind: 'oidc_account',
  owner: userDecider,
  holds({ exists, deleted, voided, provider, provider_id }, name) {
    if (!exists) return deleted || voided ? 'never' : 'not yet';
    return provider === 'oidc' && provider_id !== null && accountName(provider_id) === name ? 'yes' : 'never';
  },
  taken: () => 'This account is signing in for the first time right now; try again.',
};

/** Role and workspace that follow from the groups of an account. */
export interface Placed {
  readonly role: Role;
  /** Null: the default workspace for a new user, and the current workspace for any other. */
  readonly place: Place | null;
}

/** How many groups of an account an error names. */
const SHOWN_GROUPS = 10;

/** The first rule that fits an account. @throws AppError 403 `NO_ROLE` when there is none */
export function ruleFor(rules: readonly GroupRule[], groups: readonly string[]): GroupRule {
  const rule = rules.find(({ group }) => group === '*' || groups.includes(group));
  if (!rule) {
    const more = groups.length > SHOWN_GROUPS ? ` and ${groups.length - SHOWN_GROUPS} more` : '';
    const named = groups.slice(0, SHOWN_GROUPS).map((group) => `"${storableText(group).slice(0, 100)}"`);
    const of = groups.length === 0 ? 'it has none' : named.join(', ') + more;
    throw noRole(
      `None of the groups of your account may sign in here (${of}); ask an operator to add one to OIDC_ROLES.`,
    );
  }
  return rule;
}

const noRole = (message: string) => forbidden(message, { code: 'NO_ROLE' });

type UnknownGroups = Extract<AccountGroups, { unknown: unknown }>['unknown'];

/** What is wrong with the groups of an account, as the end of a sentence about the provider. */
const GROUPS_FAULTS: Readonly<Record<UnknownGroups, string>> = {
  absent: 'sent no groups',
  overage: 'has too many groups of this account to send them',
  unreadable: 'sent groups in a form that cannot be read',
};

const GROUPS_REMEDIES: Readonly<Record<UnknownGroups, string>> = {
  absent: 'let the provider send the claim that OIDC_GROUPS_CLAIM names, as an empty list if there are no groups',
  overage:
    'let the provider send only the groups that are assigned to this application, or send app roles and name their claim in OIDC_GROUPS_CLAIM',
  unreadable:
    'let the provider send the claim that OIDC_GROUPS_CLAIM names as a list of names, or name another claim there',
};

/**
 * The rule for a new user whose groups are unknown. An account without a claim may have no group; one whose groups
 * could not be read gets `*` only if no rule for a group comes first, since that rule might give less.
 *
 * @throws AppError 403 `NO_ROLE` when there is none
 */
export function ruleWithoutGroups(rules: readonly GroupRule[], unknown: UnknownGroups): GroupRule {
  const rule = (unknown === 'absent' ? rules : rules.slice(0, 1)).find(({ group }) => group === '*');
  if (!rule)
    throw noRole(
      `The identity provider ${GROUPS_FAULTS[unknown]}, so your account has no role here. Ask an operator: ${GROUPS_REMEDIES[unknown]}.`,
    );
  return rule;
}

/**
 * Updates the fields of a user that differ from the provider's.
 *
 * @param placed null: the groups are unknown, so role and workspace stay
 * @throws AppError 403 for a disabled user, 404
 */
export function decideOidcUpdate(
  state: UserState,
  userId: number,
  { email, picture }: Pick<OidcProfile, 'email' | 'picture'>,
  placed: Placed | null,
): readonly EventDraft[] {
  mustExist(state, 'all');
  if (!state.is_approved) throw disabled();
  const user = { user_id: userId, username: state.username };
  const place = placed?.place ?? null;
  const changes = differing(state, {
    ...(placed && { role: placed.role }),
    ...(email !== null && { email }),
    ...(picture !== null && { avatar_url: picture }),
  });
  const isMoved = place !== null && place.workspace !== state.workspace;
  return [
    ...(Object.keys(changes).length > 0
      ? [userUpdated.draft({ ...user, ...changes, password_changed: false, by: 'oidc' })]
      : []),
    ...(isMoved ? [userTransferred.draft({ ...user, ...place })] : []),
  ];
}

const disabled = () => forbidden('This account is disabled; ask an admin.', { code: 'PENDING_APPROVAL' });

/** What the commands need. */
export interface OidcParts extends SessionParts {
  readonly rules: readonly GroupRule[];
  readonly log: Pick<Logger, 'warn'>;
}

/** Signs in the holder of an account. @throws AppError 403 `NO_ROLE` or for a disabled user, 409 for the last admin */
export async function signInWithOidc(
  parts: OidcParts,
  context: CommandContext,
  profile: OidcProfile,
): Promise<SignedIn> {
  return signIn(parts, context, await userOfAccount(parts, context, profile), 'oidc');
}

/**
 * The user of an account, created or brought up to date: role, workspace, e-mail address and picture are as the provider
 * has them now. Role and workspace change only by groups that the provider sent.
 *
 * @throws AppError 403 `NO_ROLE` or for a disabled user, 409 for the last admin
 */
export async function userOfAccount(
  parts: OidcParts,
  context: CommandContext,
  profile: OidcProfile,
): Promise<FoundUser> {
  const { commands, users, rules, log } = parts;
  // Rules for every account need no groups.
  const groups = rules.every(({ group }) => group === '*') ? { known: [] } : profile.groups;
  const found = await users.findByOidcAccount(profile.account);
  if ('unknown' in groups) {
    const effect = found ? 'role and workspace stay as they are' : 'a new user gets no role of a group';
    log.warn(
      { user: found?.id ?? null },
      `the identity provider ${GROUPS_FAULTS[groups.unknown]}: ${effect}; ${GROUPS_REMEDIES[groups.unknown]}`,
    );
  }
  if (!found) {
    const rule = 'known' in groups ? ruleFor(rules, groups.known) : ruleWithoutGroups(rules, groups.unknown);
    return create(parts, context, profile, await placedBy(parts, rule));
  }
  const placed = 'known' in groups ? await placedBy(parts, ruleFor(rules, groups.known)) : null;
  const { state } = await commands.load(userDecider, userStream(found.id));
  if (decideOidcUpdate(state, found.id, profile, placed).length === 0) return found;
  const as = byProvider(context, found);
  const mayMove = await claimPlace(commands, as, found.id, placed?.place?.workspace);
  const executed = await changeUser(commands, as, users.adminsOf, found.id, (current) => {
    mayMove(current);
    return decideOidcUpdate(current, found.id, profile, placed);
  });
  return executed.events.length > 0 ? users.after(found.id, executed) : found;
}

/** @throws AppError 403 when the rule names an unknown workspace */
async function placedBy({ users }: OidcParts, { role, workspace }: GroupRule): Promise<Placed> {
  if (workspace === null) return { role, place: null };
  const place = await users.placeOf(workspace);
  if (!place) {
    throw forbidden(
      `OIDC_ROLES names the workspace "${workspace}", which does not exist; ask an operator to create it.`,
      {
        code: 'NO_ROLE',
      },
    );
  }
  return { role, place };
}

/** Changes that come from the provider are recorded as its own acts. */
const byProvider = (context: CommandContext, place: Place): CommandContext =>
  inWorkspace(withOrigin(context, { actor: systemActor('oidc') }), place);

async function create(
  parts: OidcParts,
  request: CommandContext,
  { account, names, displayName, email, picture }: OidcProfile,
  { role, place }: Placed,
): Promise<FoundUser> {
  const { commands, credentials, users } = parts;
  const at = place ?? { tenant: DEFAULT_TENANT, workspace: DEFAULT_WORKSPACE };
  const context = byProvider(request, at);
  const id = await reserveId(commands, context, 'user', userStream);
  try {
    await claimName(commands, context, oidcAccounts, 'all', accountName(account), userStream(id));
  } catch (error) {
    // A concurrent first sign-in of the same account has just created the user.
    const first = isTaken(error) ? await claimantOf(commands, oidcAccounts, 'all', accountName(account)) : undefined;
    const other = first && (await users.find(Number(first.slice(userStream(0).length - 1))));
    if (!other) throw error;
    return other;
  }
  const own = {
    email,
    avatar_url: picture,
    role,
    provider: 'oidc',
    provider_id: account,
    source: 'oidc',
    ...at,
  } as const;
  return withFreeName(usernameFrom(names), async (username) => {
    const shown = displayName ?? username;
    const isAnothers = await isNameOfAnother(commands, at.workspace, shown, userStream(id));
    const user = { ...NEW_USER, ...own, username, display_name: isAnothers ? username : shown };
    const { executed } = await addUser(commands, context, credentials, user, null, { id });
    if (!firstOf(executed.events, userCreated)) throw new Error('a user was not created');
    return users.after(id, executed);
  });
}
