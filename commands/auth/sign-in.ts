/** Sign-ins, sign-outs and refused sign-ins: nothing is decided, they are recorded. */
import {
  type SignInFailure,
  signInFailed,
  signInStream,
  userSignedIn,
  userSignedOut,
} from '../../shared/events/auth/sign-in.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { asUser, inWorkspace, type KnownUser } from './users.ts';

export async function recordSignIn(
  commands: Commands,
  context: CommandContext,
  user: KnownUser,
  method: 'password' | 'google',
): Promise<void> {
  const { id: userId, username } = user;
  await commands.record(signInStream(userId), asUser(context, user), [
    userSignedIn.draft({ userId, username, method }),
  ]);
}

export async function recordSignOut(commands: Commands, context: CommandContext, user: KnownUser): Promise<void> {
  const { id: userId, username } = user;
  await commands.record(signInStream(userId), asUser(context, user), [userSignedOut.draft({ userId, username })]);
}

/** @param user who has the submitted name, if anybody: the attempt is told in that user's workspace */
export async function recordSignInFailure(
  commands: Commands,
  context: CommandContext,
  attempt: { readonly username: string; readonly user: KnownUser | undefined; readonly reason: SignInFailure },
): Promise<void> {
  const { username, user, reason } = attempt;
  const month = new Date().toISOString().slice(0, 7);
  await commands.record(signInStream(user?.id ?? null), user ? inWorkspace(context, user) : context, [
    signInFailed.draft({ username, userId: user?.id ?? null, reason, month }),
  ]);
}
