/** Which host a request is for, and whether it is allowed: request target, host allow-list, Origin check. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { hostname } from 'node:os';

type HostSettings = { readonly allowAnyHost: boolean; readonly allowedHosts: readonly string[] };

const LOCAL = new Set(['localhost', '127.0.0.1', '::1', hostname().toLowerCase()]);

/** The host in lower case, without port, brackets or trailing dot. */
export function bareHost(value: string): string {
  const host = value.trim().toLowerCase();
  const bracketed = /^\[([^\]]*)\]/.exec(host);
  const bare = bracketed?.[1] ?? (host.split(':').length > 2 ? host : host.replace(/:\d*$/, ''));
  return bare.replace(/\.$/, '');
}

const parts = (header: string | string[] | undefined) => (header === undefined ? [] : String(header).split(','));

/** Every host that the request claims to be for. */
export function hostCandidates(headers: IncomingHttpHeaders): string[] {
  const forwarded = parts(headers.forwarded).flatMap((one) => /host="?([^";,]+)/i.exec(one)?.[1] ?? []);
  return [
    ...parts(headers['x-forwarded-host']),
    ...parts(headers['x-original-host']),
    ...parts(headers['x-forwarded-server']),
    ...forwarded,
    ...parts(headers.host),
  ]
    .map(bareHost)
    .filter((host) => host !== '');
}

function matches(host: string, pattern: string): boolean {
  const wanted = pattern.toLowerCase();
  if (wanted.startsWith('*.')) return host.endsWith(wanted.slice(1)) && host.length > wanted.length - 1;
  if (wanted.endsWith('.*')) return host.startsWith(wanted.slice(0, -1));
  return host === bareHost(wanted);
}

/** True when the list is off, or any candidate is local or matches it. */
export function hostAllowed(headers: IncomingHttpHeaders, settings: HostSettings): boolean {
  if (settings.allowAnyHost || settings.allowedHosts.length === 0) return true;
  return hostCandidates(headers).some(
    (host) => LOCAL.has(host) || settings.allowedHosts.some((pattern) => matches(host, pattern)),
  );
}

/**
 * Rewrites the absolute form `GET http://host/path`, which clients send to proxies, to the usual origin form. Its host
 * replaces the Host header (RFC 9112, 3.2.2). False for an invalid target.
 */
export function readTarget(req: IncomingMessage): boolean {
  const { url = '' } = req;
  if (url.startsWith('/')) return true;
  if (url === '*') return req.method === 'OPTIONS';
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return false;
  const { host, pathname, search } = new URL(url);
  req.headers.host = host;
  req.url = pathname + search;
  return true;
}

/**
 * The same check for a GET that changes something. Browsers send no Origin with a plain GET, but Sec-Fetch-Site. The
 * session cookie is never sent from other sites (SameSite=Strict), but it is from other origins of the same site.
 */
export function fromOwnOrigin(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  return originAllowed('POST', headers);
}

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS', 'TRACE'];

/** Protects against cross-site request forgery: the Origin must be one of the request's own hosts. A missing or opaque Origin passes. */
export function originAllowed(method: string, headers: IncomingHttpHeaders): boolean {
  const { origin } = headers;
  if (origin === undefined || SAFE_METHODS.includes(method)) return true;
  if (!URL.canParse(origin)) return true;
  return hostCandidates(headers).includes(bareHost(new URL(origin).host));
}
