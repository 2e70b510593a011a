/** What users change about themselves. */
import { forbidden } from '../../shared/errors.ts';
import { userPasswordChanged, userStream, userUpdated } from '../../shared/events/auth/users.ts';
import { type EventDraft, firstOf } from '../../shared/events/define.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { mustExist, removeUnnamedPasswords, type UserState, userDecider, wasRefused } from './users.ts';

interface ProfileRequest {
  readonly userId: number;
  readonly displayName?: string | undefined;
  /** `verified` is the credential that the given current password was right for. */
  readonly password?: { readonly verified: string; readonly credentialId: string } | undefined;
}

export function decideProfile(state: UserState, request: ProfileRequest): readonly EventDraft[] {
  const { userId, displayName, password } = request;
  mustExist(state, 'all');
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
    const changed = firstOf(executed.events, userPasswordChanged);
    if (!changed) return false;
    await credentials.removePasswords(userId, changed.data.credentialId);
    await credentials.removeSessions(userId);
    return true;
  } catch (error) {
    if (credentialId && wasRefused(error)) await removeUnnamedPasswords(commands, credentials, userId);
    throw error;
  }
}
