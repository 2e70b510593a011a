/** Sign-in, sign-out, the caller's own profile. */
import { requestAccess } from '../../../commands/auth/access-requests.ts';
import { disconnectGoogle, refreshGoogleUser } from '../../../commands/auth/google.ts';
import { updateProfile } from '../../../commands/auth/profile.ts';
import { recordSignInFailure, recordSignOut } from '../../../commands/auth/sign-in.ts';
import { findAccessRequestOf } from '../../../queries/auth/access-requests.ts';
import { wasSetUp } from '../../../queries/auth/setup.ts';
import { findGoogleUser, findUser, findUserByName, toUserRecord, type UserRow } from '../../../queries/auth/users.ts';
import { callerAnswer, MIN_OWN_PASSWORD, profileAnswer, profileBody } from '../../../shared/contract/auth/profile.ts';
import { googleBody, loginBody, signedOutAnswer } from '../../../shared/contract/auth/sign-in.ts';
import { forbidden, invalid, notFound, unauthenticated } from '../../../shared/errors.ts';
import type { SignInFailure } from '../../../shared/events/auth/sign-in.ts';
import type { Identity } from '../../../shared/identity.ts';
import { verifyGoogleToken } from '../../auth/google.ts';
import { beginSession, clearingCookies, endSessions } from '../../auth/sessions.ts';
import { asKnown, checkPasswordLimit, keyCaller, signIn } from '../../auth/sign-in.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

/** Checks a password in the same time whether or not there is such a user. */
async function refusalOf(
  services: Services,
  user: UserRow | undefined,
  password: string,
): Promise<SignInFailure | undefined> {
  const allowed = user?.provider === 'local' && user.is_approved;
  const right = await services.credentials.verifyPassword(allowed ? user.credential_id : null, password);
  if (!user) return 'user_not_found';
  if (user.provider !== 'local') return 'wrong_provider';
  if (!user.is_approved) return 'not_approved';
  return right ? undefined : 'invalid_password';
}

/** The caller's own row. Keys have none. */
async function ownRow(services: Services, identity: Identity): Promise<UserRow | undefined> {
  return identity.kind === 'user' ? findUser(services.reads, identity.id) : undefined;
}

const login = defineRoute({
  method: 'post',
  path: '/api/auth/login',
  tag: 'Auth',
  summary: 'Sign in with a password',
  description:
    'Sets the session cookie. The answer to a refused sign-in does not tell whether the name or the password was wrong; `code` is NO_USERS while nobody exists yet.',
  access: 'public',
  limit: 'login',
  body: loginBody,
  refuses: [401],
  responses: { 200: { description: 'Signed in', schema: callerAnswer } },
  async handle({ body, services, exchange, command }) {
    const { username, password } = body;
    const user = await findUserByName(services.reads, username);
    const reason = await refusalOf(services, user, password);
    if (user && reason === undefined) return signIn(services, exchange, command, user, 'password');
    await recordSignInFailure(services.commands, command, {
      username,
      user: user && asKnown(user),
      reason: reason ?? 'user_not_found',
    });
    if (!user && !(await wasSetUp(services.reads))) {
      throw unauthenticated('Invalid credentials', {
        code: 'NO_USERS',
        hint: 'There are no users yet; create the first admin at /setup (POST /api/setup).',
      });
    }
    throw unauthenticated('Invalid credentials');
  },
});

const google = defineRoute({
  method: 'post',
  path: '/api/auth/google',
  tag: 'Auth',
  summary: 'Sign in with Google',
  description:
    'Takes a Google ID token. Somebody who is not an approved user becomes an access request, and gets 403 with the code PENDING_APPROVAL.',
  access: 'public',
  limit: 'login',
  body: googleBody,
  refuses: [403],
  responses: { 200: { description: 'Signed in', schema: callerAnswer } },
  async handle({ body, services, exchange, command }) {
    const { commands, reads, settings } = services;
    const profile = await verifyGoogleToken(body.credential, settings);
    const user = await findGoogleUser(reads, profile.sub, profile.email);
    if (!user?.is_approved) {
      await requestAccess(commands, command, await findAccessRequestOf(reads, profile.sub, profile.email), profile);
      throw forbidden('Your access request is waiting for an admin.', { code: 'PENDING_APPROVAL' });
    }
    await refreshGoogleUser(commands, command, asKnown(user), profile);
    return signIn(services, exchange, command, user, 'google');
  },
});

const disconnect = defineRoute({
  method: 'post',
  path: '/api/auth/google/disconnect',
  tag: 'Auth',
  summary: 'Go back from Google to a password',
  access: 'any',
  refuses: [400],
  responses: { 200: { description: 'Disconnected', schema: signedOutAnswer } },
  async handle({ services, identity, exchange, command }) {
    if (identity.kind !== 'user') throw unauthenticated('Sign in as the user whose account is to be disconnected.');
    await disconnectGoogle(services.commands, command, services.credentials, identity.id);
    const body = { ok: true, success: true };
    const row = await ownRow(services, identity);
    if (!row || identity.session === null) return { body };
    // The old session ended with the Google account; the caller stays signed in.
    const { cookie } = await beginSession(services, exchange, row);
    return { body, headers: { 'Set-Cookie': cookie } };
  },
});

const logout = defineRoute({
  method: 'post',
  path: '/api/auth/logout',
  tag: 'Auth',
  summary: 'Sign out',
  description: 'Ends the session that the cookie stands for and clears the cookie.',
  access: 'any',
  responses: { 200: { description: 'Signed out', schema: signedOutAnswer } },
  async handle({ services, identity, exchange, command }) {
    await endSessions(services, exchange);
    if (identity.kind === 'user') await recordSignOut(services.commands, command, identity);
    return {
      body: { ok: true, success: true },
      headers: { 'Set-Cookie': clearingCookies(exchange, services.settings) },
    };
  },
});

const me = defineRoute({
  method: 'get',
  path: '/api/auth/me',
  tag: 'Auth',
  summary: 'The caller',
  access: 'viewer',
  responses: { 200: { description: 'The caller', schema: callerAnswer } },
  async handle({ services, identity }) {
    if (identity.kind !== 'user') return { body: { user: keyCaller(identity) } };
    const row = await ownRow(services, identity);
    if (!row) throw unauthenticated('This user was deleted a moment ago.');
    return { body: { user: toUserRecord(row) } };
  },
});

const updateMe = defineRoute({
  method: 'patch',
  path: '/api/auth/me',
  tag: 'Auth',
  summary: 'Change the caller’s password or display name',
  description:
    'A new password needs the current one. It ends every session of the user and begins a new one, whose cookie comes with the answer. API keys have no profile: 403.',
  access: 'any',
  body: profileBody,
  refuses: [403, 404, 429],
  responses: { 200: { description: 'Changed', schema: profileAnswer } },
  async handle({ body, services, identity, exchange, command }) {
    if (identity.kind !== 'user') throw forbidden('An API key has no profile to change; sign in as a user.');
    const { current_password: current, new_password: next } = body;
    if (next === undefined && body.display_name === undefined) {
      throw invalid('Nothing to change: send new_password with current_password, or display_name.');
    }
    if (next !== undefined && (current === undefined || current === '')) {
      throw invalid('current_password is needed to set a new password.');
    }
    if (next !== undefined && next.length < MIN_OWN_PASSWORD) {
      throw invalid(`new_password must have at least ${MIN_OWN_PASSWORD} characters.`);
    }
    const displayName = body.display_name?.trim();
    if (displayName === '') throw invalid('display_name must not be blank.');
    const row = await ownRow(services, identity);
    if (!row) throw notFound('User');

    let password: { verified: string; next: string } | undefined;
    if (next !== undefined && current !== undefined) {
      await checkPasswordLimit(services, exchange);
      const right = await services.credentials.verifyPassword(row.credential_id, current);
      if (!right || row.credential_id === null) throw forbidden('The current password is wrong.');
      password = { verified: row.credential_id, next };
    }
    const userId = identity.id;
    const renewed = await updateProfile(services.commands, command, services.credentials, {
      userId,
      displayName,
      password,
    });
    const updated = await findUser(services.reads, userId);
    if (!updated) throw notFound('User');
    const answer = { body: { success: true, user: toUserRecord(updated) } };
    if (!renewed) return answer;
    const { cookie } = await beginSession(services, exchange, updated);
    return { ...answer, headers: { 'Set-Cookie': cookie } };
  },
});

export const authRoutes: readonly Route[] = [login, google, disconnect, logout, me, updateMe];
