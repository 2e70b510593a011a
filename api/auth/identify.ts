/**
 * Identifies the caller of a request. The first match wins: a trusted proxy's header, a session cookie, the global key,
 * an agent's key. After an invalid credential, the next kind is tried.
 *
 * Every request passes through here, so lookups are cached (bounded) until a credential, user or key changes in any
 * process (`Freshness`). Expiry is checked on every use. Secrets are stored and looked up only as SHA-256: the database
 * compares hashes of 24 or more random bytes, so timing reveals nothing about a key.
 */
import { LRUCache } from 'lru-cache';
import { userOfAccount } from '../../commands/auth/oidc.ts';
import { createProxyUsers } from '../../commands/auth/proxy-users.ts';
import { hashToken } from '../../commands/auth/sessions.ts';
import { findLiveKey } from '../../queries/agents/keys.ts';
import { findGlobalKey } from '../../queries/auth/global-key.ts';
import { findUser, findUserByName } from '../../queries/auth/users.ts';
import { type Networks, networksOf } from '../../shared/addresses.ts';
import { atMost } from '../../shared/bounded.ts';
import { lineOfText } from '../../shared/contract/common.ts';
import { unauthenticated } from '../../shared/errors.ts';
import type { Identity } from '../../shared/identity.ts';
import { seconds } from '../../shared/time.ts';
import { originOf, type RequestContext } from '../http/context.ts';
import { isSafe } from '../http/hosts.ts';
import { createKeyGuard } from '../http/limits.ts';
import type { Services } from '../services.ts';
import { type Known, knownAgentKey, knownGlobalKey, knownSession, knownUser } from './known.ts';
import { credentialStamp } from './recheck.ts';
import { oidcParts, tokensOf } from './sessions.ts';

type Parts = Pick<
  Services,
  | 'settings'
  | 'log'
  | 'commands'
  | 'reads'
  | 'records'
  | 'oidc'
  | 'credentials'
  | 'freshness'
  | 'securityEvents'
  | 'limitStore'
  | 'now'
>;

interface CachedLookup {
  /** Undefined when the credential is invalid. */
  readonly known: Known | undefined;
  readonly stamp: string;
}

interface RunningLookup {
  readonly found: Promise<Known | undefined>;
  readonly stamp: string;
}

const MAX_VALID = 20_000;
/** Invalid credentials have a cache of their own, so that guessing does not evict the valid ones. */
const MAX_INVALID = 2_000;
/** We never issue longer keys. */
const MAX_KEY_LENGTH = 1_024;
/** For access tokens of an identity provider, which contain the user's groups. */
const MAX_TOKEN_LENGTH = 12_288;
/** The form of a JWT (RFC 7519): three parts in base64url; no key of ours has a dot. */
const isToken = (key: string): boolean => /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/.test(key);
const proxiedName = lineOfText(1, 128).normalize('NFC');

export function createIdentify(services: Parts): (context: RequestContext) => Promise<Identity | null> {
  const { credentials, freshness, securityEvents, settings } = services;
  // The caller took a stamp before this lookup, and so has already waited for the read models of the credential.
  const reads = services.reads.at({});
  const valid = new LRUCache<string, CachedLookup>(atMost(MAX_VALID));
  const invalid = new LRUCache<string, CachedLookup>({ max: MAX_INVALID });
  const running = new Map<string, RunningLookup>();
  /** Why tokens of the identity provider are refused, by hash. */
  const tokenFaults = new LRUCache<string, string>({ max: MAX_INVALID });

  async function lookUp(
    name: string,
    find: () => Promise<Known | undefined>,
    stamp: string,
  ): Promise<Known | undefined> {
    const cached = valid.get(name) ?? invalid.get(name);
    if (cached?.stamp === stamp) return cached.known;
    // When a credential changes, all requests in flight look up their credentials again.
    const shared = running.get(name);
    if (shared?.stamp === stamp) return shared.found;
    const one = { found: find(), stamp };
    running.set(name, one);
    try {
      const known = await one.found;
      (known ? valid : invalid).set(name, { known, stamp });
      (known ? invalid : valid).delete(name);
      return known;
    } finally {
      if (running.get(name) === one) running.delete(name);
    }
  }

  async function findSession(tokenHash: string): Promise<Known | undefined> {
    const session = await credentials.findSession(tokenHash);
    return knownSession(tokenHash, session, session && (await findUser(reads, session.userId)));
  }

  /** The user of an access token, created or updated from the claims of the token. */
  async function findTokenUser(token: string, context: RequestContext): Promise<Known | undefined> {
    const verified = await services.oidc?.verify(token);
    if (!verified) return undefined;
    if ('fault' in verified) {
      tokenFaults.set(hashToken(token), verified.fault);
      return undefined;
    }
    const command = { origin: originOf({ ...context, identity: null }) };
    const { record, is_approved } = await userOfAccount(oidcParts(services), command, verified.profile);
    // The user may be new, and a read in this request must find it. A write does not read the user.
    if (isSafe(context.req.method)) await credentialStamp(freshness);
    return knownUser({ ...record, is_approved }, verified.expiresAt);
  }

  async function findKey(key: string, context: RequestContext): Promise<Known | undefined> {
    if (isToken(key)) return findTokenUser(key, context);
    const record = await credentials.findKey(key);
    if (record?.kind === 'global') return knownGlobalKey(record, await findGlobalKey(reads));
    return record && knownAgentKey(record, await findLiveKey(reads, record.keyId));
  }

  const { proxyAuthDefaultRole } = settings;
  const isSignInProxy = networksOf(settings.proxyAuthTrustedIps);
  const createProxyUser = proxyAuthDefaultRole && createProxyUsers(services, proxyAuthDefaultRole);
  const guard = createKeyGuard(services, (context) => securityEvents.rateLimitHit(context, 'wrong-key'));

  async function findProxyUser(username: string, context: RequestContext): Promise<Known | undefined> {
    const user = await findUserByName(reads, username);
    if (user || !createProxyUser) return knownUser(user);
    await createProxyUser(username, originOf({ ...context, identity: null }));
    // What this request has read so far is older than the new user.
    await credentialStamp(freshness);
    return knownUser(await findUserByName(reads, username));
  }

  /**
   * Undefined when the key is wrong or expired.
   *
   * @throws AppError 401 that says what is wrong with a token, 429 after too many wrong keys
   */
  async function checkKey(
    key: string,
    hash: string,
    context: RequestContext,
    stamp: string,
  ): Promise<Known | undefined> {
    const name = `key ${hash}`;
    // Resending the same wrong key is not guessing, and guesses of others must not block a key that has worked.
    const seen = valid.has(name) || invalid.has(name);
    if (!seen) await guard.check(context);
    const known = await lookUp(name, () => findKey(key, context), stamp);
    if (known && known.expiresAt > seconds(services.now())) return known;
    securityEvents.apiKeyRefused(context);
    if (!seen) await guard.count(context);
    const fault = tokenFaults.get(hash);
    if (fault !== undefined) throw unauthenticated(fault);
    return undefined;
  }

  return async (context) => {
    const named = agentNameOf(context);
    const proxied = settings.proxyAuthHeader
      ? proxiedUserOf(services, context, settings.proxyAuthHeader, isSignInProxy)
      : undefined;
    const tokens = tokensOf(context);
    const key = keyOf(context);
    if (proxied === undefined && key === undefined && tokens.length === 0) return null;

    const stamp = await credentialStamp(freshness, context.startedAt);
    const now = seconds(services.now());

    if (proxied !== undefined) {
      const user = await lookUp(`proxy ${proxied}`, () => findProxyUser(proxied, context), stamp);
      if (user) {
        context.credential = { kind: 'proxy', username: proxied };
        return withAgent(user.identity, named);
      }
    }
    for (const token of tokens) {
      const hash = hashToken(token);
      const session = await lookUp(`session ${hash}`, () => findSession(hash), stamp);
      if (session && session.expiresAt > now) {
        context.credential = { kind: 'session', hash };
        return withAgent(session.identity, named);
      }
    }
    if (key === undefined) return null;
    const hash = hashToken(key);
    const known = await checkKey(key, hash, context, stamp);
    if (!known) return null;
    const credential = { kind: 'key', hash } as const;
    if (known.identity.kind === 'global-key') {
      context.credential = credential;
      const identity = withAgent(known.identity, named);
      securityEvents.globalKeyUsed(context, identity);
      return identity;
    }
    // A key speaks for its own agent; only a key with the admin scope may act under another agent's name.
    if (named !== null && named !== known.identity.agentName && !known.anyAgent) return null;
    context.credential =
      known.identity.kind === 'user'
        ? { kind: 'token', username: known.identity.username, expiresAt: known.expiresAt }
        : credential;
    if (known.identity.kind === 'user') return withAgent(known.identity, named);
    if (known.key) credentials.keyUsed(known.key);
    return known.identity;
  };
}

const withAgent = (identity: Identity, agentName: string | null): Identity =>
  agentName === null ? identity : { ...identity, agentName };

function agentNameOf({ req }: RequestContext): string | null {
  const header = req.headers['x-agent-name'];
  if (typeof header !== 'string') return null;
  // Node decodes HTTP headers as Latin-1; names are UTF-8.
  const name = decoded(Buffer.from(header, 'latin1').toString('utf8')).trim().normalize('NFC');
  return name === '' ? null : name;
}

/** Clients that can send only ASCII send it percent-encoded. Other uses of `%` stay. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `x-api-key` wins over `Authorization`. */
export function keyOf({ req }: Pick<RequestContext, 'req'>): string | undefined {
  const own = req.headers['x-api-key'];
  const key =
    typeof own === 'string' && own.trim() !== ''
      ? own.trim()
      : /^(?:bearer|apikey|token)\s+(\S.*)$/i.exec(req.headers.authorization ?? '')?.[1]?.trim();
  return key !== undefined && key.length <= (isToken(key) ? MAX_TOKEN_LENGTH : MAX_KEY_LENGTH) ? key : undefined;
}

/** The user named by a trusted proxy. The connection itself must come from the proxy; headers cannot prove that. */
function proxiedUserOf(
  services: Parts,
  context: RequestContext,
  headerName: string,
  isProxy: Networks,
): string | undefined {
  const header = context.req.headers[headerName.toLowerCase()];
  if (typeof header !== 'string' || header.trim() === '') return undefined;
  const { proxyAuthTrustedIps } = services.settings;
  if (proxyAuthTrustedIps.length === 0) {
    services.securityEvents.proxyMisconfigured(context, headerName);
    return undefined;
  }
  if (!isProxy(context.peer)) return undefined;
  const name = proxiedName.safeParse(Buffer.from(header, 'latin1').toString('utf8').trim());
  return name.success ? name.data : undefined;
}
