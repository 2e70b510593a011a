/** Stores of rate limits: in memory by default, in Redis where several processes share the limits. */
import type { ClientRateLimitInfo, Options, Store } from 'express-rate-limit';
import { Redis } from 'ioredis';
import { LRUCache } from 'lru-cache';
import { type RedisReply, RedisStore } from 'rate-limit-redis';
import { atMost } from '../shared/bounded.ts';
import type { Logger } from './logging.ts';
import { createTrouble } from './trouble.ts';

/** Callers remembered per class; with more, the ones longest unseen are forgotten first. */
const MAX_KEYS = 10_000;

export interface LimitStores {
  storeFor(name: string, windowMs: number): Store;
  close(): Promise<void>;
}

export async function createLimitStores(redisUrl: string | undefined, log: Logger): Promise<LimitStores> {
  if (!redisUrl) return { storeFor: (_name, windowMs) => new MemoryStore(windowMs), close: () => Promise.resolve() };
  const redis = new Redis(redisUrl, {
    commandTimeout: 1_000,
    maxRetriesPerRequest: 1,
    enableOfflineQueue: false,
    lazyConnect: true,
  });
  const trouble = createTrouble(
    log,
    'Redis is away: rate limits are not enforced until it is back',
    'Redis is back: rate limits are enforced',
  );
  redis.on('error', trouble.failed);
  const stores: { readonly store: RedisStore; readonly windowMs: number }[] = [];
  redis.on('ready', () => {
    trouble.worked();
    // A store that could not load its scripts while Redis was away does not try again by itself.
    for (const { store, windowMs } of stores) store.init({ windowMs } as Options).catch(trouble.failed);
  });
  await redis.connect().catch(trouble.failed);
  return {
    storeFor(name, windowMs) {
      const store = new RedisStore({
        prefix: `signalbox:limit:${name}:`,
        sendCommand: (command: string, ...args: string[]) => redis.call(command, ...args) as Promise<RedisReply>,
      });
      stores.push({ store, windowMs });
      return store;
    },
    async close() {
      redis.disconnect();
    },
  };
}

interface Window {
  hits: number;
  readonly resetTime: Date;
}

/** Fixed windows that start with the first request of a key. express-rate-limit's own store has no bound. */
class MemoryStore implements Store {
  readonly localKeys = true;
  readonly #windowMs: number;
  readonly #windows = new LRUCache<string, Window>(atMost(MAX_KEYS));

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  increment(key: string): ClientRateLimitInfo {
    let window = this.#windows.get(key);
    if (!window || window.resetTime.getTime() <= Date.now()) {
      window = { hits: 0, resetTime: new Date(Date.now() + this.#windowMs) };
      this.#windows.set(key, window);
    }
    window.hits++;
    return { totalHits: window.hits, resetTime: window.resetTime };
  }

  decrement(key: string): void {
    const window = this.#windows.get(key);
    if (window && window.hits > 0) window.hits--;
  }

  resetKey(key: string): void {
    this.#windows.delete(key);
  }
}
