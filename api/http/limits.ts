/**
 * Rate limits: fixed windows per class and key, in the stores of express-rate-limit. The contract sets limits and keys.
 */
import { hash } from 'node:crypto';
import { type ClientRateLimitInfo, ipKeyGenerator } from 'express-rate-limit';
import { agentSpokenFor } from '../../commands/agents/names.ts';
import type { Commands } from '../../commands/handler.ts';
import { AppError } from '../../shared/errors.ts';
import { pause, takingTurnsByKey } from '../../shared/waiting.ts';
import type { ApiSettings } from '../settings.ts';
import type { RequestContext } from './context.ts';

type Known<T> = T | Promise<T>;

/** Where requests of one limit class are counted. */
export interface LimitStore {
  /** Counts one more request of a caller. */
  increment(key: string): Known<ClientRateLimitInfo>;
  /** Undefined: none in the current window. */
  get(key: string): Known<ClientRateLimitInfo | undefined>;
}

interface Parts {
  readonly commands: Commands;
  readonly settings: ApiSettings;
  /** Unix ms. */
  readonly now: () => number;
  /** The store of one limit class, shared between processes where Redis is configured. */
  readonly limitStore: (name: string, windowMs: number) => LimitStore;
}

interface ClassSpec {
  /** Requests per minute. */
  readonly limit: number;
  readonly key: (context: RequestContext, parts: Pick<Parts, 'commands'>) => string | Promise<string>;
  /** Stays on under MC_DISABLE_RATE_LIMIT. */
  readonly critical: boolean;
  /** Checked before the credential. */
  readonly first?: boolean;
}

const WINDOW_MS = 60_000;

/** IPv6 prefix counted as one caller: no subscriber gets a smaller network, and one can use every address in it. */
const IPV6_NETWORK = 64;
export const networkOf = (ip: string): string => ipKeyGenerator(ip, IPV6_NETWORK);

/** Counted per workspace, so that no caller uses up another tenant's limit. */
const within = ({ identity }: RequestContext, key: string) => (identity ? `${identity.workspace}:${key}` : key);
const byIp = (context: RequestContext) => within(context, networkOf(context.ip));

/** Counted by the agent's id: callers could choose a new name for every request, but each agent has one id. */
async function byAgent(context: RequestContext, { commands }: Pick<Parts, 'commands'>): Promise<string> {
  const { identity, startedAt } = context;
  const id = identity?.agentId ?? (identity && (await agentSpokenFor(commands, identity, startedAt)));
  return id === undefined || id === null ? byIp(context) : within(context, `agent:${id}`);
}
const byUser = (context: RequestContext) => {
  const identity = context.identity;
  return identity ? `${identity.tenant}:${identity.workspace}:${identity.id}` : networkOf(context.ip);
};

export const LIMITS = {
  login: { limit: 5, key: byIp, critical: true, first: true },
  // Two calls per sign-in, and nothing to guess: colleagues behind one address sign in at the same time.
  'provider-sign-in': { limit: 60, key: byIp, critical: true, first: true },
  mutation: { limit: 60, key: byIp, critical: false },
  read: { limit: 120, key: byIp, critical: false },
  heavy: { limit: 10, key: byIp, critical: false },
  'self-register': { limit: 5, key: byIp, critical: false },
  'agent-heartbeat': { limit: 30, key: byAgent, critical: false },
  'agent-poll': { limit: 20, key: byAgent, critical: false },
  password: { limit: 5, key: byUser, critical: true },
  users: { limit: 20, key: byUser, critical: true },
  'access-requests': { limit: 20, key: byUser, critical: true },
  'api-key': { limit: 20, key: byUser, critical: true },
  'gateway-config': { limit: 20, key: byUser, critical: true },
  backup: { limit: 10, key: byUser, critical: true },
  'exec-approvals': { limit: 30, key: byUser, critical: true },
} as const satisfies Record<string, ClassSpec>;
export type LimitClass = keyof typeof LIMITS;

function tooMany(what: string, limit: number, resetTime: Date | undefined, now: number): AppError {
  const reset = resetTime?.getTime() ?? now + WINDOW_MS;
  return new AppError(429, `Too many ${what}: at most ${limit} per minute are allowed; try again later.`, {
    headers: {
      'Retry-After': String(Math.max(1, Math.ceil((reset - now) / 1_000))),
      'X-RateLimit-Limit': String(limit),
      'X-RateLimit-Remaining': '0',
      'X-RateLimit-Reset': String(Math.ceil(reset / 1_000)),
    },
  });
}

/** Different wrong API keys allowed per address and minute. */
export const WRONG_KEYS = 10;

/**
 * Limits guessing of API keys. A wrong key counts once, at its first use. Over the limit, a caller is refused before
 * another unknown key is looked up. Valid keys that are already known are not checked here.
 */
export interface KeyGuard {
  /** Call before an unknown key is looked up. @throws AppError 429 */
  check(context: RequestContext): Promise<void>;
  /** Counts a wrong key. @throws AppError 429 */
  count(context: RequestContext): Promise<void>;
}

export function createKeyGuard(
  parts: Pick<Parts, 'limitStore' | 'now'>,
  refused: (context: RequestContext) => void,
): KeyGuard {
  const store = parts.limitStore('wrong-key', WINDOW_MS);
  const refuse = (context: RequestContext, resetTime: Date | undefined) => {
    refused(context);
    throw tooMany('wrong API keys', WRONG_KEYS, resetTime, parts.now());
  };
  return {
    async check(context) {
      const known = await store.get(networkOf(context.ip));
      if (known && known.totalHits >= WRONG_KEYS) refuse(context, known.resetTime);
    },
    async count(context) {
      const { totalHits, resetTime } = await store.increment(networkOf(context.ip));
      if (totalHits > WRONG_KEYS) refuse(context, resetTime);
    },
  };
}

/** Wrong passwords of an account within a quarter of an hour, from any addresses, after which its sign-ins are slowed. */
export const WRONG_PASSWORDS = 10;
const WRONG_PASSWORDS_MS = 15 * WINDOW_MS;
/** As long as a session lasts. */
const SIGNED_IN_MS = 7 * 24 * 3_600_000;
/** A slowed account is signed in to at most once in this time, milliseconds. */
const SLOWED_MS = 2_000;
const MAX_SLOWED = 5;

/**
 * Limits guessing of one account's password from many addresses. It does not lock the account, because then anyone could
 * lock its owner out: attempts take turns with a pause before each, and networks from which the account was signed in to
 * before are not slowed.
 */
export interface AccountGuard {
  /** Runs an attempt to sign in. @throws AppError 429 when too many attempts of the account wait; what `signIn` throws */
  attempt<T>(username: string, context: RequestContext, signIn: () => Promise<T>): Promise<T>;
}

export function createAccountGuard(
  { limitStore, now }: Pick<Parts, 'limitStore' | 'now'>,
  refused: (context: RequestContext) => void,
): AccountGuard {
  const wrong = limitStore('wrong-password', WRONG_PASSWORDS_MS);
  const known = limitStore('signed-in', SIGNED_IN_MS);
  const inTurn = takingTurnsByKey(() => false);
  /** Attempts in flight, which may still turn out to be wrong. */
  const running = new Map<string, number>();
  const slowed = new Map<string, number>();
  const add = (to: Map<string, number>, key: string, count: number) => {
    const sum = (to.get(key) ?? 0) + count;
    if (sum === 0) to.delete(key);
    else to.set(key, sum);
  };

  async function wait(account: string, context: RequestContext): Promise<void> {
    if ((slowed.get(account) ?? 0) >= MAX_SLOWED) {
      refused(context);
      const turn = new Date(now() + MAX_SLOWED * SLOWED_MS);
      throw tooMany('wrong passwords of this account', 60_000 / SLOWED_MS, turn, now());
    }
    add(slowed, account, 1);
    try {
      await inTurn(account, () => pause(SLOWED_MS));
    } finally {
      add(slowed, account, -1);
    }
  }

  return {
    async attempt(username, context, signIn) {
      const account = hash('sha256', username, 'hex');
      const place = `${account} ${networkOf(context.ip)}`;
      const before = running.get(account) ?? 0;
      add(running, account, 1);
      try {
        const hits = (await wrong.get(account))?.totalHits ?? 0;
        if (hits + before >= WRONG_PASSWORDS && !(await known.get(place))) await wait(account, context);
        const result = await signIn();
        await known.increment(place);
        return result;
      } catch (error) {
        if (error instanceof AppError && error.status === 401) await wrong.increment(account);
        throw error;
      } finally {
        add(running, account, -1);
      }
    },
  };
}

/**
 * @param refused called on every refusal; writes the audit trail
 * @returns a check that throws AppError 429
 */
export function createLimiter(parts: Parts, refused: (name: LimitClass, context: RequestContext) => void) {
  const stores = new Map<string, LimitStore>(
    Object.keys(LIMITS).map((name) => [name, parts.limitStore(name, WINDOW_MS)]),
  );
  return async (name: LimitClass, context: RequestContext): Promise<void> => {
    if (parts.settings.disableRateLimit && !LIMITS[name].critical) return;
    const { limit, key }: ClassSpec = LIMITS[name];
    const { totalHits, resetTime } = await (stores.get(name) as LimitStore).increment(
      `${name}:${await key(context, parts)}`,
    );
    if (totalHits <= limit) return;
    refused(name, context);
    throw tooMany('requests', limit, resetTime, parts.now());
  };
}
