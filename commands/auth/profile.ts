/** Changes that users make to their own profile. */

import type { FoundUser } from '../../queries/auth/users.ts';
import { forbidden, isRefusal, notFound } from '../../shared/errors.ts';
import { userPasswordChanged, userStream, userUpdated } from '../../shared/events/auth/users.ts';
import { type EventDraft, firstOf } from '../../shared/events/define.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import type { CommandContext } from '../handler.ts';
import { refuseNameOfAnother } from '../names.ts';
import { removeUnnamedPasswords } from './registration.ts';
import { beginSession, type SessionParts } from './sessions.ts';
import { checkDisplayName, mustExist, type UserState, userDecider } from './users.ts';

interface ProfileRequest {
  readonly user_id: number;
  readonly display_name?: string | undefined;
  /** `verified`: id of the credential against which the current password was checked. */
  readonly password?: { readonly verified: string; readonly credential_id: string } | undefined;
}

export function decideProfile(state: UserState, request: ProfileRequest): readonly EventDraft[] {
  const { user_id, display_name, password } = request;
  mustExist(state, 'all');
  const user = { user_id, username: state.username };
  const drafts: EventDraft[] = [];
  if (password) {
    if (state.credential_id !== password.verified) {
      throw forbidden('The current password is wrong: it was changed a moment ago.');
    }
    drafts.push(userPasswordChanged.draft({ ...user, credential_id: password.credential_id, by: 'self' }));
  }
  if (display_name !== undefined && display_name !== state.display_name) {
    checkDisplayName(display_name, state.username);
    drafts.push(userUpdated.draft({ ...user, display_name, password_changed: false, by: 'self' }));
  }
  return drafts;
}

/**
 * Changes the caller's own profile. A new password ends all sessions of the user; the caller gets a new one.
 *
 * @returns the user, and the token of the new session when the password was changed
 * @throws AppError 403 when the current password is wrong or was changed in the meantime; 404 when the user was
 *   deleted
 */
export async function updateProfile(
  parts: SessionParts,
  context: CommandContext,
  request: {
    readonly user_id: number;
    readonly display_name: string | undefined;
    readonly password: { readonly current: string; readonly next: string } | undefined;
  },
): Promise<{ readonly user: FoundUser; readonly token: string | undefined }> {
  const { commands, credentials, users } = parts;
  const { user_id, display_name, password } = request;
  const before = await users.find(user_id);
  if (!before) throw notFound('User');
  if (display_name !== undefined && display_name !== before.record.display_name) {
    checkDisplayName(display_name, before.username);
    await refuseNameOfAnother(commands, before.workspace, display_name, userStream(user_id));
  }
  const checked = password && {
    verified: await verify(credentials, before, password.current),
    credential_id: await credentials.addPassword(user_id, password.next),
  };
  const executed = await commands
    .execute(userDecider, userStream(user_id), context, (state) =>
      decideProfile(state, { user_id, display_name, password: checked }),
    )
    .catch(async (error: unknown) => {
      if (checked && isRefusal(error)) await removeUnnamedPasswords(commands, credentials, user_id);
      throw error;
    });
  const changed = firstOf(executed.events, userPasswordChanged);
  if (changed) {
    await credentials.removePasswords(user_id, changed.data.credential_id);
    await credentials.removeSessions(user_id);
  }
  const user = await users.after(user_id, executed);
  return { user, token: changed ? await beginSession(parts, context, user) : undefined };
}

/** @returns the id of the credential that the password matches. @throws AppError 403 */
async function verify(
  credentials: Credentials,
  { credential_id: credentialId }: FoundUser,
  password: string,
): Promise<string> {
  // Takes the same time for users without a password.
  const right = await credentials.verifyPassword(credentialId, password);
  if (!right || credentialId === null) throw forbidden('The current password is wrong.');
  return credentialId;
}
