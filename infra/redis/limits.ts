/**
 * Stores of rate limits: in memory by default, in Redis where several processes share them. While Redis is unavailable,
 * each process counts its own requests.
 */
import type { Options } from 'express-rate-limit';
import { LRUCache } from 'lru-cache';
import type { RedisReply, RedisStore } from 'rate-limit-redis';
import type { LimitStore } from '../../api/http/limits.ts';
import { atMost } from '../../shared/bounded.ts';
import { createOutage, type Outage } from '../../shared/waiting.ts';
import type { Logger } from '../logging.ts';

/** Maximum number of callers remembered per class; beyond that, the least recently seen are forgotten first. */
const MAX_KEYS = 10_000;

export interface LimitStores {
  storeFor(name: string, windowMs: number): LimitStore;
  close(): Promise<void>;
}

/** How long Redis is not called after a failure, milliseconds, so that requests do not wait for it. */
const SKIP_MS = 1_000;

export async function createLimitStores(redisUrl: string | undefined, log: Logger): Promise<LimitStores> {
  if (!redisUrl) return { storeFor: (_name, windowMs) => memoryStore(windowMs), close: () => Promise.resolve() };
  // Imported only here, because loading them takes a while.
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
      return sharedStore(store, memoryStore(windowMs), outage);
    },
    async close() {
      redis.disconnect();
    },
  };
}

/** Counts in Redis and, while that is unavailable, in memory, so that there is always a limit. */
function sharedStore(redis: RedisStore, memory: LimitStore, outage: Outage): LimitStore {
  let leaveUntil = 0;
  async function ask<T>(work: (store: LimitStore) => T | Promise<T>): Promise<T> {
    if (Date.now() < leaveUntil) return work(memory);
    try {
      return await work(redis);
    } catch (error) {
      outage.failed(error);
      leaveUntil = Date.now() + SKIP_MS;
      return work(memory);
    }
  }
  return {
    async get(key) {
      const found = await ask((store) => store.get(key));
      // For an unknown key, the store in Redis returns NaN hits.
      return found && found.totalHits > 0 ? found : undefined;
    },
    increment: (key) => ask((store) => store.increment(key)),
  };
}

interface Window {
  totalHits: number;
  readonly resetTime: Date;
}

/** Fixed windows that start with the first request of a key. Used because express-rate-limit's own store is unbounded. */
function memoryStore(windowMs: number): LimitStore {
  const windows = new LRUCache<string, Window>(atMost(MAX_KEYS));
  const running = (key: string): Window | undefined => {
    const window = windows.get(key);
    return window && window.resetTime.getTime() > Date.now() ? window : undefined;
  };
  return {
    get: running,
    increment(key) {
      const window = running(key) ?? { totalHits: 0, resetTime: new Date(Date.now() + windowMs) };
      window.totalHits++;
      if (window.totalHits === 1) windows.set(key, window);
      return { ...window };
    },
  };
}
