/**
 * Who a request comes from. First match wins: the header of a trusted proxy, a session cookie, the deployment's key,
 * an agent's key. A credential that is not good does not hide the next one.
 *
 * Every request passes here, so what was looked up is kept, bounded, while neither a credential nor a user or key
 * changes anywhere (`Freshness`). Times of expiry are looked at on every use. Secrets are kept and looked up as
 * SHA-256 only: the database compares hashes of 24 or more random bytes, so timing tells nothing about a key.
 */
import { LRUCache } from 'lru-cache';
import { createUser } from '../../commands/auth/users.ts';
import { findLiveKey } from '../../queries/agents/keys.ts';
import { findGlobalKey } from '../../queries/auth/global-key.ts';
import { findUser, findUserByName, type UserRow } from '../../queries/auth/users.ts';
import { atMost } from '../../shared/bounded.ts';
import { lineOfText } from '../../shared/contract/common.ts';
import { AppError } from '../../shared/errors.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../shared/events/metadata.ts';
import { type Identity, type Role, systemActor } from '../../shared/identity.ts';
import { userNameFault } from '../../shared/names.ts';
import { seconds } from '../../shared/time.ts';
import { type Exchange, originOf } from '../http/exchange.ts';
import { createKeyGuard } from '../http/limits.ts';
import type { Services } from '../services.ts';
import { recordGlobalKeyUse, recordLimit, recordProxyMisconfigured, recordWrongKey } from './incidents.ts';
import { type Known, knownAgentKey, knownGlobalKey, knownProxyUser, knownSession } from './known.ts';
import { credentialStamp, credentialStampNow } from './recheck.ts';
import { hashToken, tokensOf } from './sessions.ts';

type Parts = Pick<
  Services,
  'settings' | 'log' | 'commands' | 'reads' | 'credentials' | 'freshness' | 'limitStore' | 'now'
>;

interface Kept {
  /** Undefined: the credential opens nothing. */
  readonly known: Known | undefined;
  readonly stamp: string;
}

const KEPT = 20_000;
/** Credentials that open nothing are kept apart, so that guessing does not push the good ones out. */
const KEPT_REFUSED = 2_000;
/** Longer ones are none of ours. */
const MAX_KEY_LENGTH = 1_024;
const proxiedName = lineOfText(1, 128).normalize('NFC');

export function createIdentify(services: Parts): (exchange: Exchange) => Promise<Identity | null> {
  const { credentials, freshness, reads, settings } = services;
  const good = new LRUCache<string, Kept>(atMost(KEPT));
  const refused = new LRUCache<string, Kept>({ max: KEPT_REFUSED });

  async function lookUp(
    name: string,
    find: () => Promise<Known | undefined>,
    stamp: string,
  ): Promise<Known | undefined> {
    const kept = good.get(name) ?? refused.get(name);
    if (kept?.stamp === stamp) return kept.known;
    const known = await find();
    (known ? good : refused).set(name, { known, stamp });
    (known ? refused : good).delete(name);
    return known;
  }

  async function findSession(tokenHash: string): Promise<Known | undefined> {
    const session = await credentials.findSession(tokenHash);
    return knownSession(tokenHash, session, session && (await findUser(reads, session.userId)));
  }

  async function findKey(key: string): Promise<Known | undefined> {
    const record = await credentials.findKey(key);
    if (record?.kind === 'global') return knownGlobalKey(record, await findGlobalKey(reads));
    return record && knownAgentKey(record, await findLiveKey(reads, record.keyId));
  }

  const proxyUsers = createProxyUsers(services);
  const guard = createKeyGuard(services, (exchange) => recordLimit(services, 'wrong-key', exchange));

  /** The key when it is good. @throws AppError 429 for too many wrong ones */
  async function checkKey(key: string, exchange: Exchange, stamp: string): Promise<Known | undefined> {
    const name = `key ${hashToken(key)}`;
    // A wrong key that is sent again is no guess, and one that was good before must not suffer from the neighbours'.
    const seen = good.has(name) || refused.has(name);
    if (!seen) await guard.check(exchange);
    const known = await lookUp(name, () => findKey(key), stamp);
    if (known && known.expiresAt > seconds(services.now())) return known;
    recordWrongKey(services, exchange);
    if (!seen) await guard.count(exchange);
    return undefined;
  }

  return async (exchange) => {
    const named = agentNameOf(exchange);
    const proxied = settings.proxyAuthHeader ? proxiedUserOf(services, exchange, settings.proxyAuthHeader) : undefined;
    const tokens = tokensOf(exchange);
    const key = keyOf(exchange);
    if (proxied === undefined && key === undefined && tokens.length === 0) return null;

    const stamp = credentialStampNow(freshness) ?? (await credentialStamp(freshness));
    const now = seconds(services.now());

    if (proxied !== undefined) {
      const user = await lookUp(
        `proxy ${proxied}`,
        async () => {
          return knownProxyUser(await proxyUsers(proxied, exchange));
        },
        stamp,
      );
      if (user) {
        exchange.credential = { kind: 'proxy', username: proxied };
        return withAgent(user.identity, named);
      }
    }
    for (const token of tokens) {
      const hash = hashToken(token);
      const session = await lookUp(`session ${hash}`, () => findSession(hash), stamp);
      if (session && session.expiresAt > now) {
        exchange.credential = { kind: 'session', hash };
        return withAgent(session.identity, named);
      }
    }
    if (key === undefined) return null;
    const known = await checkKey(key, exchange, stamp);
    if (!known) return null;
    const credential = { kind: 'key', hash: hashToken(key) } as const;
    if (known.identity.kind === 'global-key') {
      exchange.credential = credential;
      const identity = withAgent(known.identity, named);
      recordGlobalKeyUse(services, exchange, identity);
      return identity;
    }
    // A key speaks for its own agent; only one with the scope admin may come under another name.
    if (named !== null && named !== known.identity.agentName && !known.anyAgent) return null;
    exchange.credential = credential;
    if (known.key) credentials.keyUsed(known.key);
    return known.identity;
  };
}

const withAgent = (identity: Identity, agentName: string | null): Identity =>
  agentName === null ? identity : { ...identity, agentName };

function agentNameOf({ req }: Exchange): string | null {
  const header = req.headers['x-agent-name'];
  if (typeof header !== 'string') return null;
  // HTTP headers come as Latin-1; names are UTF-8.
  const name = Buffer.from(header, 'latin1').toString('utf8').trim();
  return name === '' ? null : name;
}

/** `x-api-key` wins over `Authorization`. */
export function keyOf({ req }: Pick<Exchange, 'req'>): string | undefined {
  const own = req.headers['x-api-key'];
  const key =
    typeof own === 'string' && own.trim() !== ''
      ? own.trim()
      : /^(?:bearer|apikey|token)\s+(\S.*)$/i.exec(req.headers.authorization ?? '')?.[1]?.trim();
  return key !== undefined && key.length <= MAX_KEY_LENGTH ? key : undefined;
}

/** The user that a trusted proxy names. The connection itself has to come from the proxy, whatever headers say. */
function proxiedUserOf(services: Parts, exchange: Exchange, headerName: string): string | undefined {
  const header = exchange.req.headers[headerName.toLowerCase()];
  if (typeof header !== 'string' || header.trim() === '') return undefined;
  const { proxyAuthTrustedIps } = services.settings;
  if (proxyAuthTrustedIps.length === 0) {
    recordProxyMisconfigured(services, exchange, headerName);
    return undefined;
  }
  const peer = (exchange.req.socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  if (!proxyAuthTrustedIps.includes(peer)) return undefined;
  const name = proxiedName.safeParse(Buffer.from(header, 'latin1').toString('utf8').trim());
  return name.success ? name.data : undefined;
}

/** Finds the users that a proxy names, and creates those that are new when there is a role for them. */
function createProxyUsers(services: Parts): (username: string, exchange: Exchange) => Promise<UserRow | undefined> {
  const { commands, credentials, reads, settings, log } = services;
  /** One creation per name at a time. */
  const creating = new Map<string, Promise<void>>();

  async function create(username: string, role: Role, exchange: Exchange): Promise<void> {
    const origin = { ...originOf({ ...exchange, identity: null }), actor: systemActor('proxy') };
    try {
      await createUser(
        commands,
        { origin },
        credentials,
        {
          username,
          displayName: username,
          email: null,
          avatarUrl: null,
          role,
          provider: 'local',
          providerId: null,
          isApproved: true,
          tenant: DEFAULT_TENANT,
          workspace: DEFAULT_WORKSPACE,
          source: 'proxy',
        },
        null,
      );
      log.info({ username, role }, 'a user was created because the proxy named them');
    } catch (error) {
      // Another process was faster: then the user is there.
      if (!(error instanceof AppError) || error.status !== 409) throw error;
    }
  }

  return async (username, exchange) => {
    const known = await findUserByName(reads, username);
    if (known) return known.is_approved ? known : undefined;
    const role = settings.proxyAuthDefaultRole;
    if (!role) return undefined;
    const fault = userNameFault(username);
    if (fault !== undefined) {
      log.warn({ fault }, 'the proxy named somebody who cannot become a user');
      return undefined;
    }
    let one = creating.get(username);
    if (!one) {
      one = create(username, role, exchange).finally(() => creating.delete(username));
      creating.set(username, one);
    }
    await one;
    const row = await findUserByName(reads, username);
    return row?.is_approved ? row : undefined;
  };
}
