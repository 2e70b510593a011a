/** Users who sign in with Google, and switching back to a password. */
import { forbidden, invalid } from '../../shared/errors.ts';
import { googleDisconnected, userStream, userUpdated } from '../../shared/events/auth/users.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import type { GoogleProfile } from '../../shared/ports/auth/google.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { beginSession, type SessionParts } from './sessions.ts';
import { asUser, differing, type KnownUser, mustExist, type UserState, userDecider } from './users.ts';

/** Fields that a user takes over from their Google account. */
export const fromGoogle = ({ sub, email, picture }: GoogleProfile) => ({
  provider: 'google' as const,
  provider_id: sub,
  email,
  ...(picture !== null && { avatar_url: picture }),
});

/** A Google sign-in of an approved user. @throws AppError 403 for all others */
export function decideGoogleSignIn(state: UserState, userId: number, profile: GoogleProfile): readonly EventDraft[] {
  if (!state.exists || !state.is_approved || state.provider !== 'google') {
    throw forbidden('This account is not approved.', { code: 'PENDING_APPROVAL' });
  }
  const changes = differing(state, fromGoogle(profile));
  if (Object.keys(changes).length === 0) return [];
  return [
    userUpdated.draft({ user_id: userId, username: state.username, ...changes, password_changed: false, by: 'google' }),
  ];
}

export function decideDisconnect(state: UserState, userId: number): readonly EventDraft[] {
  mustExist(state, 'all');
  if (state.provider !== 'google') throw invalid('This account does not sign in with Google.');
  if (state.credential_id === null) {
    throw invalid('This account has no password; ask an admin to set one first, or you could not sign in again.');
  }
  return [googleDisconnected.draft({ user_id: userId, username: state.username })];
}

/** Updates an approved user from their Google account before the sign-in. @throws AppError 403 `PENDING_APPROVAL` */
export async function refreshGoogleUser(
  commands: Commands,
  context: CommandContext,
  user: KnownUser,
  profile: GoogleProfile,
): Promise<Executed> {
  return commands.execute(userDecider, userStream(user.id), asUser(context, user), (state) =>
    decideGoogleSignIn(state, user.id, profile),
  );
}

/**
 * Switches from Google sign-in back to the password, which ends all sessions of the user.
 *
 * @param request.hasSession whether the caller had a session and gets a new one
 * @returns the token of the new session
 * @throws AppError 400 when there is no password, or the user does not sign in with Google
 */
export async function disconnectGoogle(
  parts: SessionParts,
  context: CommandContext,
  request: { readonly user_id: number; readonly hasSession: boolean },
): Promise<string | undefined> {
  const { commands, credentials, users } = parts;
  const { user_id: userId, hasSession } = request;
  const decide = (state: UserState) => decideDisconnect(state, userId);
  const executed = await commands.execute(userDecider, userStream(userId), context, decide);
  await credentials.removeSessions(userId);
  return hasSession ? beginSession(parts, context, await users.after(userId, executed)) : undefined;
}
