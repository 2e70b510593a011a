/** Sign-in and sign-out. */
import { disconnectGoogle } from '../../../commands/auth/google.ts';
import { signInWithOidc } from '../../../commands/auth/oidc.ts';
import { signInWithGoogle, signInWithPassword, signOut } from '../../../commands/auth/sign-in.ts';
import { oidcBegun, oidcBody, oidcSettings } from '../../../shared/contract/auth/oidc.ts';
import { callerResponse } from '../../../shared/contract/auth/profile.ts';
import { googleBody, googleSettings, loginBody, signedOutResponse } from '../../../shared/contract/auth/sign-in.ts';
import { invalid, unauthenticated } from '../../../shared/errors.ts';
import type { OidcProvider } from '../../../shared/ports/auth/oidc.ts';
import {
  begunCookies,
  begunOf,
  clearingCookies,
  endedCookie,
  oidcParts,
  sessionCookie,
  sessionHeaders,
  sessionParts,
  tokensOf,
} from '../../auth/sessions.ts';
import type { RequestContext } from '../../http/context.ts';
import { originUsed } from '../../http/hosts.ts';
import type { PublicUrl } from '../../http/public-url.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

const login = defineRoute({
  method: 'post',
  path: '/api/auth/login',
  summary: 'Sign in with a password',
  description:
    'Sets the session cookie. A refused sign-in does not reveal whether the name or the password was wrong; `code` is NO_USERS if there are no users yet.',
  access: 'public',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'login',
  body: loginBody,
  refuses: [401],
  responses: { 200: { description: 'Signed in', schema: callerResponse } },
  async handle({ body, services, context, command }) {
    const { user, token } = await services.accountGuard.attempt(body.username, context, () =>
      signInWithPassword(sessionParts(services), command, body),
    );
    return { body: { user: user.record }, headers: sessionHeaders(services, context, token) };
  },
});

const googleState = defineRoute({
  method: 'get',
  path: '/api/auth/google',
  summary: 'Get what a page needs to offer Google sign-in',
  access: 'public',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  responses: { 200: { description: 'The client id', schema: googleSettings } },
  respond: ({ services }) => ({ client_id: services.settings.googleClientId ?? null }),
});

const google = defineRoute({
  method: 'post',
  path: '/api/auth/google',
  summary: 'Sign in with Google',
  description:
    'Takes a Google ID token. For a person who is not an approved user, it creates an access request and returns 403 with the code PENDING_APPROVAL.',
  access: 'public',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'provider-sign-in',
  body: googleBody,
  refuses: [403],
  responses: { 200: { description: 'Signed in', schema: callerResponse } },
  async handle({ body, services, context, command }) {
    const profile = await services.verifyGoogleToken(body.credential);
    const { user, token } = await signInWithGoogle(sessionParts(services), command, profile);
    return { body: { user: user.record }, headers: sessionHeaders(services, context, token) };
  },
});

const disconnect = defineRoute({
  method: 'post',
  path: '/api/auth/google/disconnect',
  summary: 'Switch from Google sign-in back to a password',
  access: 'any',
  rules: { agentKeys: 'never', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'none',
  refuses: [400],
  responses: { 200: { description: 'Disconnected', schema: signedOutResponse } },
  async handle({ services, identity, context, command }) {
    if (identity.kind !== 'user') throw unauthenticated('Sign in as the user whose account is to be disconnected.');
    const token = await disconnectGoogle(sessionParts(services), command, {
      user_id: identity.id,
      hasSession: identity.session !== null,
    });
    return { body: { ok: true, success: true }, headers: sessionHeaders(services, context, token) };
  },
});

const NO_OIDC = 'No OpenID Connect provider is configured on this deployment; ask an operator to set OIDC_ISSUER.';

const NOT_BEGUN = 'This browser has begun no such sign-in within the last ten minutes; begin the sign-in again.';
const NO_COOKIE =
  ' Over plain HTTP, browsers do not keep the cookie of a sign-in: open the console over HTTPS, or ask an operator to set MC_COOKIE_SECURE=0.';

/** @throws AppError 400 when none is configured */
function providerOf({ oidc }: Services): OidcProvider {
  if (!oidc) throw invalid(NO_OIDC);
  return oidc;
}

/** Where the provider sends the browser back to: the console. */
function redirectUri(context: RequestContext, { publicUrl }: PublicUrl): string {
  const origin = publicUrl ?? originUsed(context);
  if (origin === undefined) throw invalid('The Host header is not the name of a host.');
  return `${origin}/`;
}

const oidcState = defineRoute({
  method: 'get',
  path: '/api/auth/oidc',
  summary: 'Get what a page needs to offer sign-in through the identity provider',
  access: 'public',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  responses: { 200: { description: 'The name of the provider', schema: oidcSettings } },
  respond: ({ services }) => ({ name: services.oidc ? services.settings.oidcName : null }),
});

const oidcBegin = defineRoute({
  method: 'post',
  path: '/api/auth/oidc/begin',
  summary: 'Begin a sign-in through the identity provider',
  description:
    'Returns the address of the provider that the browser goes to, and sets a cookie for ten minutes. The provider sends the browser back to `/`, below PUBLIC_URL if that is set, with `code` and `state`.',
  access: 'public',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'provider-sign-in',
  refuses: [400, 503],
  responses: { 200: { description: 'Begun', schema: oidcBegun } },
  async handle({ services, context }) {
    const { url, begun } = await providerOf(services).begin(redirectUri(context, services.settings));
    return { body: { url }, headers: { 'Set-Cookie': begunCookies(services, context, begun) } };
  },
});

const oidc = defineRoute({
  method: 'post',
  path: '/api/auth/oidc',
  summary: 'Sign in through the identity provider',
  description:
    "Exchanges the provider's redirect for a session cookie. The first sign-in of an account creates its user. Every sign-in for which the provider sends groups sets role and workspace as OIDC_ROLES says for them; `code` is NO_ROLE if it says nothing.",
  access: 'public',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'provider-sign-in',
  body: oidcBody,
  refuses: [400, 403, 409, 503],
  responses: { 200: { description: 'Signed in', schema: callerResponse } },
  async handle({ body, services, context, command }) {
    const provider = providerOf(services);
    const begun = begunOf(services, context, body.state);
    if (!begun) throw invalid(NOT_BEGUN + (context.secure || !services.settings.cookieSecure ? '' : NO_COOKIE));
    const profile = await provider.finish(body, redirectUri(context, services.settings), begun);
    const { user, token } = await signInWithOidc(oidcParts(services), command, profile);
    const cookies = [
      sessionCookie(context, token, services.now(), services.settings),
      endedCookie(services, context, begun),
    ];
    return { body: { user: user.record }, headers: { 'Set-Cookie': cookies } };
  },
});

const logout = defineRoute({
  method: 'post',
  path: '/api/auth/logout',
  summary: 'Sign out',
  description: 'Ends the session and clears its cookie.',
  access: 'any',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'none',
  responses: { 200: { description: 'Signed out', schema: signedOutResponse } },
  async handle({ services, identity, context, command }) {
    await signOut(services, command, tokensOf(context), identity.kind === 'user' ? identity : undefined);
    return {
      body: { ok: true, success: true },
      headers: { 'Set-Cookie': clearingCookies(context, services.settings) },
    };
  },
});

export const signInRoutes: readonly Route[] = [
  login,
  googleState,
  google,
  disconnect,
  oidcState,
  oidcBegin,
  oidc,
  logout,
];
