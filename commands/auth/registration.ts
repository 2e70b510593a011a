/**
 * How users are created.
 *
 * A new password is first stored in the credential store under a random id; then the event names that id. Passwords
 * that the log does not name, such as those of refused changes, are worthless and removed afterwards.
 */
import { conflict, invalid, isRefusal } from '../../shared/errors.ts';
import { userCreated, userStream } from '../../shared/events/auth/users.ts';
import { firstOf } from '../../shared/events/define.ts';
import { userNameFault } from '../../shared/names.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import { claimName, isClaimed, isTaken, releaseName } from '../claims.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { refuseNameOfAnother, userNameClaims } from '../names.ts';
import { reserveId } from '../record-ids.ts';
import {
  checkDisplayName,
  decideCreate,
  FIRST_ADMIN_NAME,
  firstAdmin,
  inWorkspace,
  type NewUser,
  userDecider,
  usernameTaken,
} from './users.ts';

/** The same as `addUser`. @returns the id */
export const createUser = async (...of: Parameters<typeof addUser>): Promise<number> => (await addUser(...of)).id;

/**
 * Creates a user.
 *
 * @param password null: no password, as for users who sign in elsewhere
 * @param options.first the user must be the first of the deployment
 * @param options.id an id reserved before; default: a new one
 * @param options.isTaken whether the read model has a user of this name: that saves the slow hash, the claim decides
 * @throws AppError 400 for a name that is not allowed, 409 if it is taken or another request was first
 */
export async function addUser(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
  user: NewUser,
  password: string | null,
  options: {
    readonly first?: boolean;
    readonly id?: number;
    readonly isTaken?: (username: string) => Promise<boolean>;
  } = {},
): Promise<{ readonly id: number; readonly executed: Executed }> {
  const fault = userNameFault(user.username);
  if (fault !== undefined) throw invalid(`username: ${fault}`, [`username: ${fault}`]);
  if (user.display_name !== null) checkDisplayName(user.display_name, user.username);
  // A repeated request may find the user that it created itself.
  if (!context.intents && (await options.isTaken?.(user.username))) throw conflict(usernameTaken(user.username));
  const id = options.id ?? (await reserveId(commands, context, 'user', userStream));
  const stream = userStream(id);
  if (user.display_name !== null && user.display_name !== user.username)
    await refuseNameOfAnother(commands, user.workspace, user.display_name, stream);
  const credentialId = password === null ? null : await credentials.addPassword(id, password);
  // In the user's own workspace, unless the caller belongs to another tenant: the new tenant must not see that caller's
  // name and address.
  const there = user.tenant === context.origin.tenant ? inWorkspace(context, user) : context;
  try {
    if (options.first) await claimName(commands, there, firstAdmin, 'all', FIRST_ADMIN_NAME, stream);
    for (const { kind, scope, name, shown } of namesOf(user))
      await claimName(commands, there, kind, scope, name, stream, shown);
    // For good, so that the first-run setup is closed once there is any user.
    if (!options.first)
      await claimName(commands, there, firstAdmin, 'all', FIRST_ADMIN_NAME, stream).catch((error: unknown) => {
        if (!isTaken(error)) throw error;
      });
    const executed = await commands.execute(userDecider, stream, there, (state) =>
      decideCreate(state, id, user, credentialId),
    );
    const named = firstOf(executed.events, userCreated)?.data.credential_id ?? credentialId;
    // An earlier run of the same request may have stored another password; the event says which one counts.
    if (credentialId !== null && context.intents) await credentials.removePasswords(id, named ?? undefined);
    return { id, executed };
  } catch (error) {
    if (credentialId !== null && isRefusal(error)) await credentials.removePasswords(id);
    // Other processes may be creating a user with a reserved id.
    if (isClaimed(error) && options.id === undefined) await releaseUsername(commands, there, user, stream);
    throw error;
  }
}

/** All names that a user claims; those most likely to be taken come first. */
const namesOf = ({ username, workspace }: Pick<NewUser, 'username' | 'workspace'>) => [
  ...userNameClaims('all', username),
  ...userNameClaims(workspace, username),
];

/** Releases the name of a user who is deleted, or was never created. Claims of other owners stay. */
export async function releaseUsername(
  commands: Commands,
  context: CommandContext,
  user: Pick<NewUser, 'username' | 'workspace'>,
  stream: string,
): Promise<void> {
  for (const { kind, scope, name } of namesOf(user).reverse())
    await releaseName(commands, context, kind, scope, name, stream);
}

/** Removes those passwords of a user that the log does not name. */
export async function removeUnnamedPasswords(
  commands: Commands,
  credentials: Credentials,
  userId: number,
): Promise<void> {
  const { state } = await commands.load(userDecider, userStream(userId));
  await credentials.removePasswords(userId, state.credential_id ?? undefined);
}
