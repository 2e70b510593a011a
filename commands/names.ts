/**
 * The names of users and agents, which share one name space: two names that look alike count as one. A name is claimed
 * by its keys (`nameKeys`): by an agent in its workspace, by a user in its workspace and among all users.
 */

import { conflict } from '../shared/errors.ts';
import { userStream } from '../shared/events/auth/users.ts';
import { displayKeys, nameKeys } from '../shared/names.ts';
import { type AgentState, agentDecider, holding } from './agents/agents.ts';
import { type UserState, userDecider } from './auth/users.ts';
import { claimantOf, type NameKind, type NameScope } from './claims.ts';
import type { Commands } from './handler.ts';
import { type Claim, SHARED_NAME } from './naming.ts';

const USER = userStream(0).slice(0, -1);

/** The 409 message. */
export const nameTaken = (name: string): string =>
  `An agent or a user named "${name}", or with a name that looks like it, already exists; choose another name.`;

/** The 409 message for a name under which a user is shown. */
const nameDisplayed = (name: string): string =>
  `A user is shown as "${name}", or by a display name that looks like it; choose another name, or change that display name first.`;

/** The users whose display names have this key; none if the read model cannot be read. */
const displayedAs = async ({ displayed }: Pick<Commands, 'displayed'>, workspace: number, key: string) =>
  (await displayed?.(workspace, key).catch(() => [])) ?? [];

/** What both kinds of owners share. */
const shared: Pick<NameKind<never>, 'kind' | 'of' | 'taken' | 'checkFree'> = {
  kind: SHARED_NAME,
  of: (owner) => (owner.startsWith(USER) ? userNames : agentNames),
  taken: nameTaken,
  async checkFree(commands, scope, key, shown, owner) {
    if (scope === 'all') return;
    // A write needs no read model. Without this check too, recipients resolve to the holder of the name.
    const displayed = await displayedAs(commands, Number(scope), key);
    if (displayed.some((id) => userStream(id) !== owner)) throw conflict(nameDisplayed(shown), { code: 'NAME_TAKEN' });
  },
};

const isKeyOf = (name: string, key: string): boolean => nameKeys(name).includes(key);

const agentNames: NameKind<AgentState> = {
  ...shared,
  owner: agentDecider,
  holds: holding(({ name }, key) => isKeyOf(name, key)),
};

const userNames: NameKind<UserState> = {
  ...shared,
  owner: userDecider,
  holds({ exists, deleted, voided, username, workspace }, key, scope) {
    if (deleted || (!exists && voided)) return 'never';
    if (!exists) return 'not yet';
    if (!isKeyOf(username, key)) return 'never';
    // Another workspace: an admin may be about to move the user there.
    return scope === 'all' || scope === workspace ? 'yes' : 'not yet';
  },
};

const claimsOf = <State>(kind: NameKind<State>, scope: NameScope, name: string): Claim<State>[] =>
  nameKeys(name).map((key) => ({ kind, scope, name: key, shown: name }));

/** The claims of an agent with this name. `refuse`: throws for names that agents must not have. */
export const agentNameClaims = (
  workspace: number,
  name: string,
  refuse: (name: string) => void,
): readonly Claim<AgentState>[] => claimsOf({ ...agentNames, refuse }, workspace, name);

/** The claims of a user with this name in a scope: a workspace, or all users. */
export const userNameClaims = (scope: number | 'all', username: string): readonly Claim<UserState>[] =>
  claimsOf(userNames, scope, username);

/** The 409 message for a display name. */
const displayNameTaken = (name: string): string =>
  `display_name: another user or an agent is named "${name}", or has a name that looks like it; choose another one.`;

/** Stream of the user or agent that has a name with this key in a scope; undefined if none has. */
async function holderOf(commands: Pick<Commands, 'load'>, scope: NameScope, key: string): Promise<string | undefined> {
  const claimant = await claimantOf(commands, shared, scope, key);
  if (claimant === undefined) return undefined;
  const its = shared.of?.(claimant) as NameKind<unknown>;
  return its.holds((await commands.load(its.owner, claimant)).state, key, scope) === 'yes' ? claimant : undefined;
}

/**
 * Whether another user, or an agent of the workspace, has a name that looks like this display name.
 *
 * @param owner stream of the user
 */
export async function isNameOfAnother(
  commands: Pick<Commands, 'load'>,
  workspace: number,
  displayName: string,
  owner: string,
): Promise<boolean> {
  for (const key of displayKeys(displayName))
    for (const scope of ['all', workspace] as const) {
      const holder = await holderOf(commands, scope, key);
      if (holder !== undefined && holder !== owner) return true;
    }
  return false;
}

/**
 * Whether a text reads as another user or an agent: its name, or a display name, or one that looks like either.
 *
 * @param owner stream of the user who writes it
 */
export async function readsAsAnother(
  ...[commands, workspace, text, owner]: [Pick<Commands, 'load' | 'displayed'>, number, string, string]
): Promise<boolean> {
  if (await isNameOfAnother(commands, workspace, text, owner)) return true;
  for (const key of displayKeys(text))
    if ((await displayedAs(commands, workspace, key)).some((id) => userStream(id) !== owner)) return true;
  return false;
}

/** @throws AppError 409 for a display name that looks like the name of another user, or of an agent of the workspace */
export async function refuseNameOfAnother(
  ...[commands, workspace, displayName, owner]: Parameters<typeof isNameOfAnother>
): Promise<void> {
  if (await isNameOfAnother(commands, workspace, displayName, owner))
    throw conflict(displayNameTaken(displayName), { code: 'NAME_TAKEN' });
}

/** Whether a user or an agent of the workspace has this name or is shown under it, or has one that looks like it. */
export async function isHeld(
  commands: Pick<Commands, 'load' | 'displayed'>,
  workspace: number,
  name: string,
): Promise<boolean> {
  for (const key of nameKeys(name)) {
    if ((await holderOf(commands, workspace, key)) !== undefined) return true;
    if ((await displayedAs(commands, workspace, key)).length > 0) return true;
  }
  return false;
}
