/** Sign-in with a password or with Google, and sign-out. Successes and refused passwords are recorded. */

import type { FoundUser } from '../../queries/auth/users.ts';
import { forbidden, unauthenticated } from '../../shared/errors.ts';
import {
  type SignInFailure,
  signInFailed,
  signInStream,
  userSignedIn,
  userSignedOut,
} from '../../shared/events/auth/sign-in.ts';
import { mayHavePassword } from '../../shared/events/auth/users.ts';
import type { GoogleProfile } from '../../shared/ports/auth/google.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import { seconds } from '../../shared/time.ts';
import type { CommandContext } from '../handler.ts';
import { requestAccess } from './access-requests.ts';
import { refreshGoogleUser } from './google.ts';
import { beginSession, hashToken, type SessionParts, type SignedIn } from './sessions.ts';
import { asUser, inWorkspace, type KnownUser } from './users.ts';

/**
 * Signs in with a password.
 *
 * @throws AppError 401, the same for an unknown name and a wrong password; its code is `NO_USERS` if there are no
 *   users
 */
export async function signInWithPassword(
  parts: SessionParts,
  context: CommandContext,
  { username, password }: { readonly username: string; readonly password: string },
): Promise<SignedIn> {
  const { commands, credentials, users } = parts;
  const user = await users.findByName(username);
  const reason = await refusalOf(credentials, user, password);
  if (user && reason === undefined) return signIn(parts, context, user, 'password');
  const wasSetUp = user !== undefined || (await users.wasSetUp());
  const user_id = user?.id ?? null;
  const month = new Date().toISOString().slice(0, 7);
  // In the workspace of the user with this name, if there is one.
  await commands.record(signInStream(user_id), user ? inWorkspace(context, user) : context, [
    signInFailed.draft({ username, user_id, reason: reason ?? 'user_not_found', month }),
  ]);
  if (!wasSetUp) {
    throw unauthenticated('Invalid credentials', {
      code: 'NO_USERS',
      hint: 'There are no users yet; create the first admin at /setup (POST /api/setup).',
    });
  }
  throw unauthenticated('Invalid credentials');
}

/** Why a sign-in is refused; undefined if it is allowed. Takes the same time whether or not the user exists. */
async function refusalOf(
  credentials: Credentials,
  user: FoundUser | undefined,
  password: string,
): Promise<SignInFailure | undefined> {
  const allowed = user !== undefined && mayHavePassword(user.provider) && user.is_approved;
  const right = await credentials.verifyPassword(allowed ? user.credential_id : null, password);
  if (!user) return 'user_not_found';
  if (!mayHavePassword(user.provider) || (user.provider === 'proxy' && user.credential_id === null))
    return 'wrong_provider';
  if (!user.is_approved) return 'not_approved';
  return right ? undefined : 'invalid_password';
}

/**
 * Signs in the holder of a Google account. For a person who is not an approved user, the attempt creates an access
 * request.
 *
 * @param profile of a verified token
 * @throws AppError 403 `PENDING_APPROVAL`
 */
export async function signInWithGoogle(
  parts: SessionParts,
  context: CommandContext,
  profile: GoogleProfile,
): Promise<SignedIn> {
  const { commands, users } = parts;
  const found = await users.findByGoogleAccount(profile.sub, profile.email);
  if (!found?.is_approved) {
    await requestAccess(commands, context, await users.findAccessRequest(profile.sub, profile.email), profile);
    throw forbidden('Your access request is waiting for an admin.', { code: 'PENDING_APPROVAL' });
  }
  const executed = await refreshGoogleUser(commands, context, found, profile);
  const user = executed.events.length > 0 ? await users.after(found.id, executed) : found;
  return signIn(parts, context, user, 'google');
}

/** Begins a session of `user` and records it. */
export async function signIn(
  parts: SessionParts,
  context: CommandContext,
  user: FoundUser,
  method: 'password' | 'google' | 'oidc',
): Promise<SignedIn> {
  const { commands, credentials } = parts;
  const { id: userId, username } = user;
  const token = await beginSession(parts, context, user);
  try {
    const { events } = await commands.record(signInStream(userId), asUser(context, user), [
      userSignedIn.draft({ user_id: userId, username, method }),
    ]);
    const at = seconds(events[0]?.meta.at ?? parts.now());
    return { user: { ...user, record: { ...user.record, last_login_at: at, updated_at: at } }, token };
  } catch (error) {
    // No session without its entry in the audit trail.
    await credentials.removeSession(hashToken(token));
    throw error;
  }
}

/** Ends the sessions of these tokens. @param user whose sign-out to record; undefined for callers without an account */
export async function signOut(
  { commands, credentials }: Pick<SessionParts, 'commands' | 'credentials'>,
  context: CommandContext,
  tokens: readonly string[],
  user: KnownUser | undefined,
): Promise<void> {
  for (const token of tokens) await credentials.removeSession(hashToken(token));
  if (!user) return;
  const { id: userId, username } = user;
  await commands.record(signInStream(userId), asUser(context, user), [
    userSignedOut.draft({ user_id: userId, username }),
  ]);
}
