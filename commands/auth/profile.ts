/** What users change about themselves. */
import { forbidden, isRefusal, notFound } from '../../shared/errors.ts';
import { userPasswordChanged, userStream, userUpdated } from '../../shared/events/auth/users.ts';
import { type EventDraft, firstOf } from '../../shared/events/define.ts';
import type { FoundUser } from '../../shared/ports/auth/users.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import type { CommandContext, Executed } from '../handler.ts';
import { removeUnnamedPasswords } from './registration.ts';
import { beginSession, type SessionParts } from './sessions.ts';
import { checkDisplayName, mustExist, type UserState, userDecider } from './users.ts';

interface ProfileRequest {
  readonly userId: number;
  readonly displayName?: string | undefined;
  /** `verified`: the credential that the current password was checked against. */
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
    checkDisplayName(displayName, state.username);
    drafts.push(userUpdated.draft({ ...user, displayName, passwordChanged: false, by: 'self' }));
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
    readonly userId: number;
    readonly displayName: string | undefined;
    readonly password: { readonly current: string; readonly next: string } | undefined;
  },
): Promise<{ readonly user: FoundUser; readonly token: string | undefined }> {
  const { users } = parts;
  const { userId, displayName, password } = request;
  const before = await users.find(userId);
  if (!before) throw notFound('User');
  const verified = password && (await verify(parts.credentials, before, password.current));
  const { executed, changed } = await applyProfile(parts, context, {
    userId,
    displayName,
    password: password && verified !== undefined ? { verified, next: password.next } : undefined,
  });
  const user = await users.after(userId, executed);
  return { user, token: changed ? await beginSession(parts, context, user) : undefined };
}

/** @returns the id of the credential that the password matches. @throws AppError 403 */
async function verify(credentials: Credentials, { credentialId }: FoundUser, password: string): Promise<string> {
  // Takes the same time for users without a password.
  const right = await credentials.verifyPassword(credentialId, password);
  if (!right || credentialId === null) throw forbidden('The current password is wrong.');
  return credentialId;
}

/** @returns also whether the password was changed */
async function applyProfile(
  { commands, credentials }: SessionParts,
  context: CommandContext,
  request: {
    readonly userId: number;
    readonly displayName: string | undefined;
    readonly password: { readonly verified: string; readonly next: string } | undefined;
  },
): Promise<{ readonly executed: Executed; readonly changed: boolean }> {
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
    if (!changed) return { executed, changed: false };
    await credentials.removePasswords(userId, changed.data.credentialId);
    await credentials.removeSessions(userId);
    return { executed, changed: true };
  } catch (error) {
    if (credentialId && isRefusal(error)) await removeUnnamedPasswords(commands, credentials, userId);
    throw error;
  }
}
