/** Sign-in and sign-out. */
import { disconnectGoogle } from '../../../commands/auth/google.ts';
import { signInWithGoogle, signInWithPassword, signOut } from '../../../commands/auth/sign-in.ts';
import { callerAnswer } from '../../../shared/contract/auth/profile.ts';
import { googleBody, googleSettings, loginBody, signedOutAnswer } from '../../../shared/contract/auth/sign-in.ts';
import { unauthenticated } from '../../../shared/errors.ts';
import { clearingCookies, sessionHeaders, sessionParts, tokensOf } from '../../auth/sessions.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const login = defineRoute({
  method: 'post',
  path: '/api/auth/login',
  tag: 'Auth',
  summary: 'Sign in with a password',
  description:
    'Sets the session cookie. A refused sign-in does not reveal whether the name or the password was wrong; `code` is NO_USERS if there are no users yet.',
  access: 'public',
  limit: 'login',
  body: loginBody,
  refuses: [401],
  responses: { 200: { description: 'Signed in', schema: callerAnswer } },
  async handle({ body, services, exchange, command }) {
    const { user, token } = await signInWithPassword(sessionParts(services), command, body);
    return { body: { user: user.record }, headers: sessionHeaders(services, exchange, token) };
  },
});

const googleState = defineRoute({
  method: 'get',
  path: '/api/auth/google',
  tag: 'Auth',
  summary: 'Get what a page needs to offer Google sign-in',
  access: 'public',
  responses: { 200: { description: 'The client id', schema: googleSettings } },
  handle: ({ services }) => ({ body: { client_id: services.settings.googleClientId ?? null } }),
});

const google = defineRoute({
  method: 'post',
  path: '/api/auth/google',
  tag: 'Auth',
  summary: 'Sign in with Google',
  description:
    'Takes a Google ID token. For a person who is not an approved user, it creates an access request and returns 403 with the code PENDING_APPROVAL.',
  access: 'public',
  limit: 'login',
  body: googleBody,
  refuses: [403],
  responses: { 200: { description: 'Signed in', schema: callerAnswer } },
  async handle({ body, services, exchange, command }) {
    const profile = await services.verifyGoogleToken(body.credential);
    const { user, token } = await signInWithGoogle(sessionParts(services), command, profile);
    return { body: { user: user.record }, headers: sessionHeaders(services, exchange, token) };
  },
});

const disconnect = defineRoute({
  method: 'post',
  path: '/api/auth/google/disconnect',
  tag: 'Auth',
  summary: 'Switch from Google sign-in back to a password',
  access: 'any',
  refuses: [400],
  responses: { 200: { description: 'Disconnected', schema: signedOutAnswer } },
  async handle({ services, identity, exchange, command }) {
    if (identity.kind !== 'user') throw unauthenticated('Sign in as the user whose account is to be disconnected.');
    const token = await disconnectGoogle(sessionParts(services), command, {
      userId: identity.id,
      hasSession: identity.session !== null,
    });
    return { body: { ok: true, success: true }, headers: sessionHeaders(services, exchange, token) };
  },
});

const logout = defineRoute({
  method: 'post',
  path: '/api/auth/logout',
  tag: 'Auth',
  summary: 'Sign out',
  description: 'Ends the session and clears its cookie.',
  access: 'any',
  responses: { 200: { description: 'Signed out', schema: signedOutAnswer } },
  async handle({ services, identity, exchange, command }) {
    await signOut(services, command, tokensOf(exchange), identity.kind === 'user' ? identity : undefined);
    return {
      body: { ok: true, success: true },
      headers: { 'Set-Cookie': clearingCookies(exchange, services.settings) },
    };
  },
});

export const signInRoutes: readonly Route[] = [login, googleState, google, disconnect, logout];
