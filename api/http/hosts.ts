/** Determines the host of a request, and whether it is allowed: request target, host allow-list, cross-site check. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIPv4 } from 'node:net';
import { hostname } from 'node:os';
import type { RequestHandler } from 'express';
import { plainAddress } from '../../shared/addresses.ts';
import type { RequestContext } from './context.ts';
import { sendJson } from './errors.ts';
import type { PublicUrl } from './public-url.ts';

type HostSettings = PublicUrl & { readonly allowAnyHost: boolean; readonly allowedHosts: readonly string[] };
type Asked = Pick<RequestContext, 'req' | 'trusted'>;

const LOOPBACK = ['localhost', '127.0.0.1', '::1'];
const LOCAL = new Set([...LOOPBACK, hostname().toLowerCase()]);

/** The host in lower case, without port, brackets or trailing dot; an address in its one spelling. */
export function bareHost(value: string): string {
  const host = value.trim().toLowerCase();
  const bracketed = /^\[([^\]]*)\]/.exec(host);
  const bare = bracketed?.[1] ?? (host.split(':').length > 2 ? host : host.replace(/:\d*$/, ''));
  const named = bare.replace(/\.$/, '');
  return plainAddress(named) ?? named;
}

const parts = (header: string | string[] | undefined) =>
  String(header ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

const forwardedIn = (headers: IncomingHttpHeaders): string[] => [
  ...parts(headers['x-forwarded-host']),
  ...parts(headers['x-original-host']),
  ...parts(headers.forwarded).flatMap((one) => /host="?([^";,]+)/i.exec(one)?.[1] ?? []),
];

/** Every host that the request names, with its port. Forwarded hosts count only from a trusted proxy. */
export function hostsOf({ req: { headers }, trusted }: Asked): string[] {
  const forwarded = trusted ? [...forwardedIn(headers), ...parts(headers['x-forwarded-server'])] : [];
  return headers.host === undefined ? forwarded : [...forwarded, headers.host];
}

/** The origin under which the client called the service, such as `https://example.com`; undefined without a Host header. */
export function originUsed(context: Pick<RequestContext, 'req' | 'trusted' | 'secure'>): string | undefined {
  const [host] = hostsOf(context);
  const origin = `${context.secure ? 'https' : 'http'}://${host}`;
  return host !== undefined && URL.canParse(origin) ? new URL(origin).origin : undefined;
}

function matches(host: string, pattern: string): boolean {
  const wanted = pattern.toLowerCase();
  if (wanted.startsWith('*.')) return host.endsWith(wanted.slice(1)) && host.length > wanted.length - 1;
  // A prefix of digits matches addresses only: anyone can register 100.example.com.
  if (/^[\d.]+\*$/.test(wanted)) return isIPv4(host) && host.startsWith(wanted.slice(0, -1));
  if (wanted.endsWith('.*')) return host.startsWith(wanted.slice(0, -1));
  return host === bareHost(wanted);
}

const isListed = (host: string, { allowedHosts, publicUrl }: HostSettings) =>
  allowedHosts.some((one) => matches(host, one)) ||
  (publicUrl !== undefined && host === bareHost(new URL(publicUrl).host));

/** True when the list is off, or when any host of the request is local or matches the list. */
export function hostAllowed(asked: Asked, settings: HostSettings): boolean {
  if (settings.allowAnyHost || settings.allowedHosts.length === 0) return true;
  return hostsOf(asked)
    .map(bareHost)
    .some((host) => LOCAL.has(host) || isListed(host, settings));
}

/**
 * Whether the client used a name that only the operator can have given to this service: a loopback name or an allowed
 * host. A page can point its own host name at any address, so another name may belong to an attacker's page.
 */
export function hostKnown({ req: { headers }, trusted }: Asked, settings: HostSettings): boolean {
  const forwarded = trusted ? forwardedIn(headers) : [];
  const used = forwarded.length > 0 ? forwarded : [headers.host ?? ''];
  return used.map(bareHost).every((host) => LOOPBACK.includes(host) || isListed(host, settings));
}

/** Refused by `checkHost`: only OPTIONS may have this target. */
const INVALID = '*';

/**
 * Rewrites the absolute form `GET http://host/path`, which clients send to proxies, to the usual origin form. Its host
 * replaces the Host header (RFC 9112, 3.2.2). Runs before Express, which calls no handler for a target that it cannot
 * parse.
 */
export function readTarget(req: Pick<IncomingMessage, 'url' | 'headers'>): void {
  const { url = '' } = req;
  if (url.startsWith('/')) return;
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    req.url = INVALID;
    return;
  }
  const { host, pathname, search } = new URL(url);
  req.headers.host = host;
  req.url = pathname + search;
}

/** Load balancers and orchestrators probe the address of a process, under no name; these responses hold no data. */
const isProbe = (url: string): boolean => /^\/(?:health\/(?:live|ready)|api\/health)(?:\?|$)/.test(url);

/** Refuses requests with an invalid target (400), without a host (400), or for a host that is not allowed (403). */
export const checkHost =
  (settings: HostSettings): RequestHandler =>
  (req, res, next) => {
    if (req.url === INVALID && req.method !== 'OPTIONS') {
      sendJson(res, 400, { error: 'The request target is invalid: send a path, such as /api/docs.' });
    } else if (req.headers.host === undefined && req.httpVersion === '1.1') {
      sendJson(res, 400, { error: 'The Host header is missing; HTTP/1.1 requires it.' });
    } else if (isProbe(req.url) || hostAllowed(req.context, settings)) {
      next();
    } else {
      res.statusCode = 403;
      res.setHeader('Content-Type', 'text/plain; charset=utf-8');
      res.end('Forbidden');
    }
  };

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS', 'TRACE'];

export const isSafe = (method: string | undefined): boolean => SAFE_METHODS.includes(method ?? 'GET');

function sameOrigin(origin: string, host: string, secure: boolean): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host: named } = new URL(origin);
  // The scheme of the Origin determines the default port. A page without TLS has another port than a request with TLS.
  const asked = `${protocol}//${host}`;
  return URL.canParse(asked) && new URL(asked).host === named && !(secure && protocol === 'http:');
}

/** Facts of the reference deployment, for callers with a key: ports are ignored, and an opaque Origin passes. */
const sameHost = (origin: string, host: string): boolean =>
  !URL.canParse(origin) || bareHost(new URL(origin).host) === bareHost(host);

/**
 * Whether a page of another site may have made this request, which changes something (cross-site request forgery).
 * `Sec-Fetch-Site`, which browsers also send with a GET, and `Origin` show that; a client that sends neither is not a
 * current browser. The check is looser for a request with a key and no session, because no page can make a browser send
 * a key to another site.
 */
export function isCrossSite(
  context: Pick<RequestContext, 'req' | 'trusted' | 'secure'>,
  { publicUrl }: PublicUrl,
  keyOnly: boolean,
): boolean {
  const { origin, 'sec-fetch-site': site } = context.req.headers;
  if (!keyOnly && site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  if (origin === undefined) return false;
  // Some proxies replace the Host header.
  if (publicUrl !== undefined && origin === new URL(publicUrl).origin) return false;
  return !hostsOf(context).some((host) =>
    keyOnly ? sameHost(origin, host) : sameOrigin(origin, host, context.secure),
  );
}
