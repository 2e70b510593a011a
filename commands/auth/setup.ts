/** First-run setup: the first visitor to a deployment that never had a user becomes its admin. */
import { forbidden } from '../../shared/errors.ts';
import { userStream } from '../../shared/events/auth/users.ts';
import type { CommandContext } from '../handler.ts';
import { reserveId } from '../record-ids.ts';
import { addUser } from './registration.ts';
import type { SessionParts, SignedIn } from './sessions.ts';
import { signIn } from './sign-in.ts';
import { asUser, NEW_USER } from './users.ts';

/**
 * Creates the first admin and signs them in.
 *
 * @throws AppError 403 once a user has existed, 409 when another setup was faster
 */
export async function setUp(
  parts: SessionParts,
  context: CommandContext,
  admin: { readonly username: string; readonly password: string; readonly display_name: string | undefined },
): Promise<SignedIn> {
  const { commands, credentials, users } = parts;
  if (await users.wasSetUp()) throw forbidden('This deployment is already set up; sign in instead.');
  const { username, password, display_name: displayName } = admin;
  const id = await reserveId(commands, context, 'user', userStream);
  const { executed } = await addUser(
    commands,
    asUser(context, { ...NEW_USER, id, username }),
    credentials,
    {
      ...NEW_USER,
      username,
      display_name: displayName || `${username.charAt(0).toUpperCase()}${username.slice(1)}`,
      role: 'admin',
      source: 'setup',
    },
    password,
    { first: true, id },
  );
  return signIn(parts, context, await users.after(id, executed), 'password');
}
