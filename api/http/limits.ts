/**
 * Rate limits: fixed windows per class and key, by express-rate-limit. Limits and keys are those of the contract.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Options, rateLimit } from 'express-rate-limit';
import { AppError } from '../../shared/errors.ts';
import type { Services } from '../services.ts';
import type { Exchange } from './exchange.ts';

interface ClassSpec {
  /** Requests per minute. */
  readonly limit: number;
  readonly key: (exchange: Exchange) => string;
  /** MC_DISABLE_RATE_LIMIT does not turn it off. */
  readonly critical: boolean;
  /** Checked before the credential. */
  readonly first?: boolean;
}

const WINDOW_MS = 60_000;
const byIp = (exchange: Exchange) => exchange.ip;
const byAgent = (exchange: Exchange) => {
  const name = exchange.req.headers['x-agent-name'];
  return typeof name === 'string' && name.trim() !== '' ? `agent:${name.trim().slice(0, 200)}` : exchange.ip;
};
const byUser = (exchange: Exchange) => {
  const identity = exchange.identity;
  return identity ? `${identity.tenant}:${identity.workspace}:${identity.id}` : exchange.ip;
};

export const LIMITS = {
  login: { limit: 5, key: byIp, critical: true, first: true },
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
} as const satisfies Record<string, ClassSpec>;
export type LimitClass = keyof typeof LIMITS;

export interface Limiter {
  /** @throws AppError 429 */
  check(name: LimitClass, exchange: Exchange): Promise<void>;
}

/** `refused` is told of every refusal, for the audit. */
export function createLimiter(services: Services, refused: (name: LimitClass, exchange: Exchange) => void): Limiter {
  type Run = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => Promise<void>;
  const limiters = new Map<LimitClass, Run>();
  for (const [name, spec] of Object.entries(LIMITS) as [LimitClass, ClassSpec][]) {
    const options: Partial<Options> = {
      windowMs: WINDOW_MS,
      limit: spec.limit,
      store: services.limitStore(name, WINDOW_MS),
      // A store that is away must not take the service down with it.
      passOnStoreError: true,
      legacyHeaders: false,
      standardHeaders: false,
      // The key is computed from our own notion of the client's address; the library's checks are about Express's.
      validate: false,
      keyGenerator: (req) => `${name}:${spec.key(held.get(req) as Exchange)}`,
      handler: (req, _res, next) => {
        const exchange = held.get(req) as Exchange;
        const info = (req as unknown as { rateLimit?: { resetTime?: Date } }).rateLimit;
        const reset = info?.resetTime?.getTime() ?? services.now() + WINDOW_MS;
        refused(name, exchange);
        next(
          new AppError(429, `Too many requests: at most ${spec.limit} a minute here; try again later.`, {
            headers: {
              'Retry-After': String(Math.max(1, Math.ceil((reset - services.now()) / 1_000))),
              'X-RateLimit-Limit': String(spec.limit),
              'X-RateLimit-Remaining': '0',
              'X-RateLimit-Reset': String(Math.ceil(reset / 1_000)),
            },
          }),
        );
      },
    };
    limiters.set(name, rateLimit(options) as unknown as Run);
  }
  const held = new WeakMap<IncomingMessage, Exchange>();
  return {
    async check(name, exchange) {
      if (services.settings.disableRateLimit && !LIMITS[name].critical) return;
      held.set(exchange.req, exchange);
      await new Promise<void>((resolve, reject) => {
        const run = limiters.get(name) as Run;
        run(exchange.req, exchange.res, (error) => (error ? reject(error) : resolve())).catch(reject);
      });
    },
  };
}
