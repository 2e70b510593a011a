/**
 * Stores of rate limits: in memory by default, in Redis where several processes share them. While Redis is unavailable,
 * each process counts its own requests.
 */
import type { ClientRateLimitInfo, Options, Store } from 'express-rate-limit';
import { LRUCache } from 'lru-cache';
import type { RedisReply, RedisStore } from 'rate-limit-redis';
import { atMost } from '../../shared/bounded.ts';
import { createOutage, type Outage } from '../../shared/waiting.ts';
import type { Logger } from '../logging.ts';

/** Most callers remembered per class; beyond that, the least recently seen are forgotten first. */
const MAX_KEYS = 10_000;

export interface LimitStores {
  storeFor(name: string, windowMs: number): Store;
  close(): Promise<void>;
}

/** How long Redis is not called after a failure, milliseconds, so that requests do not keep waiting for it. */
const SKIP_MS = 1_000;

export async function createLimitStores(redisUrl: string | undefined, log: Logger): Promise<LimitStores> {
  if (!redisUrl) return { storeFor: (_name, windowMs) => new MemoryStore(windowMs), close: () => Promise.resolve() };
  // Only here, because loading them takes a while.
  const [{ Redis }, { RedisStore }] = await Promise.all([import('ioredis'), import('rate-limit-redis')]);
  const redis = new Redis(redisUrl, {
    commandTimeout: 1_000,
    maxRetriesPerRequest: 1,
    enableOfflineQueue: false,
    lazyConnect: true,
  });
  const outage = createOutage(
    log,
    'Redis is unavailable; until it is back, each process counts requests for rate limits separately',
    'Redis is back: rate limits are shared again',
  );
  redis.on('error', outage.failed);
  const stores: { readonly store: RedisStore; readonly windowMs: number }[] = [];
  const load = (store: RedisStore, windowMs: number) => {
    store.init({ windowMs } as Options).catch(outage.failed);
  };
  redis.on('ready', () => {
    outage.worked();
    // A store that could not load its scripts while Redis was unavailable does not retry by itself.
    for (const { store, windowMs } of stores) load(store, windowMs);
  });
  await redis.connect().catch(outage.failed);
  return {
    storeFor(name, windowMs) {
      const store = new RedisStore({
        prefix: `signalbox:limit:${name}:`,
        sendCommand: (command: string, ...args: string[]) => redis.call(command, ...args) as Promise<RedisReply>,
      });
      stores.push({ store, windowMs });
      load(store, windowMs);
      return new SharedStore(store, new MemoryStore(windowMs), outage);
    },
    async close() {
      redis.disconnect();
    },
  };
}

/** Counts in Redis and, while that is unavailable, in memory, so that there is always a limit. */
class SharedStore implements Store {
  readonly #redis: RedisStore;
  readonly #memory: MemoryStore;
  readonly #outage: Outage;
  #leaveUntil = 0;

  constructor(redis: RedisStore, memory: MemoryStore, outage: Outage) {
    this.#redis = redis;
    this.#memory = memory;
    this.#outage = outage;
  }

  async #ask<T>(redis: () => Promise<T>, memory: () => T): Promise<T> {
    if (Date.now() < this.#leaveUntil) return memory();
    try {
      return await redis();
    } catch (error) {
      this.#outage.failed(error);
      this.#leaveUntil = Date.now() + SKIP_MS;
      return memory();
    }
  }

  get(key: string): Promise<ClientRateLimitInfo | undefined> {
    return this.#ask<ClientRateLimitInfo | undefined>(
      () => this.#redis.get(key),
      () => this.#memory.get(key),
    );
  }

  increment(key: string): Promise<ClientRateLimitInfo> {
    return this.#ask(
      () => this.#redis.increment(key),
      () => this.#memory.increment(key),
    );
  }

  decrement(key: string): Promise<void> {
    return this.#ask(
      () => this.#redis.decrement(key),
      () => this.#memory.decrement(key),
    );
  }

  async resetKey(key: string): Promise<void> {
    this.#memory.resetKey(key);
    await this.#ask(
      () => this.#redis.resetKey(key),
      () => undefined,
    );
  }
}

interface Window {
  hits: number;
  readonly resetTime: Date;
}

/**
 * Fixed windows that start with the first request of a key. Used because express-rate-limit's own store is unbounded.
 */
class MemoryStore implements Store {
  readonly localKeys = true;
  readonly #windowMs: number;
  readonly #windows = new LRUCache<string, Window>(atMost(MAX_KEYS));

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** The current window. */
  #running(key: string): Window | undefined {
    const window = this.#windows.get(key);
    return window && window.resetTime.getTime() > Date.now() ? window : undefined;
  }

  get(key: string): ClientRateLimitInfo | undefined {
    const window = this.#running(key);
    return window && { totalHits: window.hits, resetTime: window.resetTime };
  }

  increment(key: string): ClientRateLimitInfo {
    let window = this.#running(key);
    if (!window) {
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
