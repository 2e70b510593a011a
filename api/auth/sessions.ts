/**
 * The session cookie. It is always HttpOnly and SameSite=Strict, and Secure unless the operator
 * turned that off. Its name depends on the scheme and the path: browsers accept `__Secure-` and `__Host-` only over HTTPS
 * and with Secure, and `__Host-` only for all paths of the host.
 */
import { z } from 'zod';
import type { OidcParts } from '../../commands/auth/oidc.ts';
import { SESSION_SECONDS, type SessionParts } from '../../commands/auth/sessions.ts';
import { userDirectory } from '../../queries/auth/users.ts';
import type { BegunSignIn } from '../../shared/ports/auth/oidc.ts';
import type { RequestContext } from '../http/context.ts';
import { basePathOf, type PublicUrl } from '../http/public-url.ts';
import type { Services } from '../services.ts';

export const PLAIN_COOKIE = 'mc-session';
const HOST_PREFIX = '__Host-';
const PREFIXES = ['__Secure-', HOST_PREFIX, ''] as const;

type CookieSettings = PublicUrl & { readonly cookieSecure: boolean };

/** The prefix of cookies over HTTPS. */
export const securePrefix = (settings: PublicUrl): string => (basePathOf(settings) === '' ? HOST_PREFIX : '__Secure-');

const prefixOf = (secure: boolean, settings: CookieSettings): string =>
  secure && settings.cookieSecure ? securePrefix(settings) : '';

const cookieName = (secure: boolean, settings: CookieSettings): string => prefixOf(secure, settings) + PLAIN_COOKIE;

function cookie(name: string, value: string, maxAge: number, now: number, settings: CookieSettings): string {
  const expires = new Date(maxAge === 0 ? 0 : now + maxAge * 1_000).toUTCString();
  const secure = settings.cookieSecure ? ' Secure;' : '';
  const path = (name.startsWith(HOST_PREFIX) ? '' : basePathOf(settings)) || '/';
  return `${name}=${value}; Path=${path}; Max-Age=${maxAge}; Expires=${expires}; HttpOnly;${secure} SameSite=Strict`;
}

/** `Set-Cookie` for a new session. @param now Unix milliseconds */
export const sessionCookie = (
  context: Pick<RequestContext, 'secure'>,
  token: string,
  now: number,
  settings: CookieSettings,
) => cookie(cookieName(context.secure, settings), token, SESSION_SECONDS, now, settings);

/** Time allowed for signing in at the identity provider, seconds. */
const BEGUN_SECONDS = 600;
/** Secrets of a started sign-in: three values of 43 characters. */
const begunSchema = z.object({ state: z.string(), nonce: z.string(), verifier: z.string() });

/** How many started sign-ins a browser keeps; older ones are deleted. */
const MAX_BEGUN = 5;

const begunPrefix = (secure: boolean, settings: CookieSettings): string => `${prefixOf(secure, settings)}mc-oidc-`;
/** Each sign-in has a cookie of its own, so that two tabs can sign in at the same time. */
const begunName = (prefix: string, state: string): string => prefix + state.slice(0, 16);

/** Parsed by cookie-parser; the inner requests of `inside.ts` carry none. */
const cookiesOf = ({ req }: Pick<RequestContext, 'req'>): Readonly<Record<string, unknown>> => req.cookies ?? {};

/** `Set-Cookie` lines that store a started sign-in in the browser, and delete the oldest if there are too many. */
export function begunCookies({ settings, now }: Services, context: RequestContext, begun: BegunSignIn): string[] {
  const prefix = begunPrefix(context.secure, settings);
  // Browsers send the older ones first (RFC 6265, 5.4).
  const earlier = Object.keys(cookiesOf(context)).filter((name) => name.startsWith(prefix));
  const surplus = earlier.slice(0, Math.max(0, earlier.length - MAX_BEGUN + 1));
  const value = Buffer.from(JSON.stringify(begun)).toString('base64url');
  return [
    ...surplus.map((name) => cookie(name, '', 0, 0, settings)),
    cookie(begunName(prefix, begun.state), value, BEGUN_SECONDS, now(), settings),
  ];
}

/** `Set-Cookie` that deletes a started sign-in. */
export const endedCookie = ({ settings }: Services, { secure }: RequestContext, { state }: BegunSignIn): string =>
  cookie(begunName(begunPrefix(secure, settings), state), '', 0, 0, settings);

/** The sign-in with this state that this browser started; undefined if there is none or it is too old. */
export function begunOf({ settings }: Services, context: RequestContext, state: string): BegunSignIn | undefined {
  const value = cookiesOf(context)[begunName(begunPrefix(context.secure, settings), state)];
  if (typeof value !== 'string' || value === '') return undefined;
  try {
    return begunSchema.parse(JSON.parse(Buffer.from(value, 'base64url').toString()));
  } catch {
    return undefined;
  }
}

const TOKEN = /^[0-9a-f]{64}$/;

/** The session cookies of a request; values that cannot be tokens are left out. */
function presented(context: Pick<RequestContext, 'req'>): { readonly name: string; readonly token: string }[] {
  const cookies = cookiesOf(context);
  return PREFIXES.flatMap((prefix) => {
    const name = prefix + PLAIN_COOKIE;
    const token = cookies[name];
    return typeof token === 'string' && TOKEN.test(token) ? [{ name, token }] : [];
  });
}

/** Session tokens of a request; the HTTPS cookies first. */
export const tokensOf = (context: Pick<RequestContext, 'req'>): string[] =>
  presented(context).map(({ token }) => token);

/** `Set-Cookie` lines that clear the session in the browser: this scheme's cookie, and those that it sent. */
export function clearingCookies(context: Pick<RequestContext, 'req' | 'secure'>, settings: CookieSettings): string[] {
  const names = new Set([cookieName(context.secure, settings), ...presented(context).map(({ name }) => name)]);
  return [...names].map((name) => cookie(name, '', 0, 0, settings));
}

type SessionServices = Pick<Services, 'commands' | 'credentials' | 'reads' | 'records' | 'now'>;

/** Dependencies of commands that begin a session. */
export const sessionParts = ({ commands, credentials, reads, records, now }: SessionServices): SessionParts => ({
  commands,
  credentials,
  users: userDirectory(reads, records),
  now,
});

/** Dependencies of commands about accounts of the OpenID Connect provider. */
export const oidcParts = (services: SessionServices & Pick<Services, 'settings' | 'log'>): OidcParts => ({
  ...sessionParts(services),
  log: services.log,
  rules: services.settings.oidcRoles,
});

/** The header that sends a new session to the browser; no header without a token. */
export const sessionHeaders = (
  { settings, now }: Services,
  context: RequestContext,
  token: string | undefined,
): Readonly<Record<string, string>> =>
  token === undefined ? {} : { 'Set-Cookie': sessionCookie(context, token, now(), settings) };
