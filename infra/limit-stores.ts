/** Stores of rate limits: in memory by default, in Redis where several processes share the limits. */
import type { ClientRateLimitInfo, Store } from 'express-rate-limit';
import { Redis } from 'ioredis';
import { LRUCache } from 'lru-cache';
import { type RedisReply, RedisStore } from 'rate-limit-redis';
import type { Logger } from './logging.ts';

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
  redis.on('error', (error) =>
    log.warn({ err: error }, 'Redis is away: rate limits are not enforced until it is back'),
  );
  await redis.connect().catch((error) => log.warn({ err: error }, 'Redis is not reachable yet'));
  return {
    storeFor: (name) =>
      new RedisStore({
        prefix: `signalbox:limit:${name}:`,
        sendCommand: (command: string, ...args: string[]) => redis.call(command, ...args) as Promise<RedisReply>,
      }),
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
  readonly #windows = new LRUCache<string, Window>({ max: MAX_KEYS });

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
