/**
 * Caches the body of a GET until a projection that it was made from changes. Credential, role and limit are checked
 * before anything is served from here.
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { atMost } from '../../shared/bounded.ts';
import { type Identity, taskViewOf } from '../../shared/identity.ts';
import type { Freshness, Stamp } from '../../shared/ports/freshness.ts';
import { seconds } from '../../shared/time.ts';
import { readAtOf, showPosition } from './consistency.ts';
import type { Exchange } from './exchange.ts';
import type { Route } from './route.ts';

/** Total of all bodies, bytes. */
const MAX_BYTES = 48_000_000;
/** Routes are remembered by URL, so that a known URL skips the router. */
const MAX_URLS = 10_000;

/**
 * A caller that sees the tasks of one agent only has responses of its own, whatever the route is about. They depend on
 * whose the tasks are.
 */
function ofView(identity: Identity): string {
  const { agent } = taskViewOf(identity);
  return agent === null ? '' : JSON.stringify([agent.id, agent.name]);
}
const withTasks = (models: readonly string[]): readonly string[] =>
  models.includes(TASKS) ? models : [...models, TASKS];
/** The read model that says whose a task is. */
const TASKS = 'tasks';

interface CachedResponse {
  readonly stamp: string;
  readonly body: Buffer;
  readonly etag: string;
}

export interface ResponseCache {
  /** The route of a URL that was answered from the cache before. */
  routeOf(url: string): Route | undefined;
  /** Responds from memory, or with what `make` gives (called once for concurrent requests for the same response). */
  answer(route: Route, exchange: Exchange, identity: Identity, make: () => Promise<unknown>): Promise<void>;
  /** Responds at once if the cached body is known to be current; false otherwise. */
  answerNow(route: Route, exchange: Exchange, identity: Identity): boolean;
}

/** @param now Unix ms */
export function createResponseCache(freshness: Freshness, now: () => number): ResponseCache {
  const responses = new LRUCache<string, CachedResponse>({
    maxSize: MAX_BYTES,
    sizeCalculation: (one, key) => one.body.length + key.length + 200,
  });
  const routes = new LRUCache<string, Route>(atMost(MAX_URLS));
  const making = new Map<string, Promise<CachedResponse>>();

  const keyOf = (route: Route, exchange: Exchange, identity: Identity) =>
    `${identity.workspace} ${exchange.req.url} ${ofView(identity)} ${route.cache?.per?.(identity) ?? ''}`;
  const scopeOf = (route: Route, identity: Identity) => {
    const cache = route.cache as NonNullable<Route['cache']>;
    const models = taskViewOf(identity).agent === null ? cache.models : withTasks(cache.models);
    return [models, cache.scope === 'all' ? 'all' : identity.workspace] as const;
  };
  /** What a body is current for, from the stamp of its read models. */
  const currentFor = (route: Route, { value }: Stamp) => (route.cache?.clock ? `${value} ${seconds(now())}` : value);

  return {
    routeOf: (url) => routes.get(url),
    answerNow(route, exchange, identity) {
      const cached = responses.get(keyOf(route, exchange, identity));
      if (!cached) return false;
      const stamp = freshness.stampNow(...scopeOf(route, identity), readAtOf(exchange));
      if (stamp === undefined || currentFor(route, stamp) !== cached.stamp) return false;
      showPosition(exchange, stamp.position);
      send(exchange, cached);
      return true;
    },
    async answer(route, exchange, identity, make) {
      const key = keyOf(route, exchange, identity);
      const shown = await freshness.stamp(...scopeOf(route, identity), readAtOf(exchange));
      const stamp = currentFor(route, shown);
      let response = responses.get(key);
      if (response?.stamp !== stamp) {
        const running = `${stamp} ${key}`;
        let one = making.get(running);
        if (!one) {
          // The stamp is taken before the read. If something changes in between, a new body gets an old stamp, and the
          // next request makes it again; an old body never gets a new stamp.
          one = make().then((value) => {
            const body = Buffer.from(JSON.stringify(value));
            return { stamp, body, etag: `W/"${createHash('sha1').update(body).digest('base64url')}"` };
          });
          making.set(running, one);
          one.then(
            () => making.delete(running),
            () => making.delete(running),
          );
        }
        response = await one;
        responses.set(key, response);
        routes.set(exchange.req.url ?? '', route);
      }
      showPosition(exchange, shown.position);
      send(exchange, response);
    },
  };
}

function send({ req, res }: Exchange, { body, etag }: CachedResponse): void {
  res.setHeader('ETag', etag);
  res.setHeader('Cache-Control', 'private, no-cache');
  if (req.headers['if-none-match'] === etag) {
    res.statusCode = 304;
    res.end();
    return;
  }
  res.statusCode = 200;
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  res.setHeader('Content-Length', body.length);
  res.end(req.method === 'HEAD' ? undefined : body);
}
