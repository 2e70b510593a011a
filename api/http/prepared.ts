/**
 * Prepared answers: the body of a GET, kept until a projection that it was made from moves. The gate (credential,
 * role, limit) is passed before anything is taken from here.
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { atMost } from '../../shared/bounded.ts';
import type { Identity } from '../../shared/identity.ts';
import type { Freshness } from '../../shared/ports/freshness.ts';
import type { Exchange } from './exchange.ts';
import type { Route } from './route.ts';

/** All bodies together, bytes. */
const KEPT_BYTES = 48_000_000;
/** Routes are remembered by URL, so that a known URL skips the router. */
const KEPT_URLS = 10_000;

interface Prepared {
  readonly stamp: string;
  readonly body: Buffer;
  readonly etag: string;
}

export interface PreparedAnswers {
  /** The route that answered this URL before, when it may be answered from here. */
  routeOf(url: string): Route | undefined;
  /** Answers from memory, or by `make` (once for all that ask for the same at the same time). */
  answer(route: Route, exchange: Exchange, identity: Identity, make: () => Promise<unknown>): Promise<void>;
  /** Answers at once when the kept body is known to hold; false otherwise. */
  answerNow(route: Route, exchange: Exchange, identity: Identity): boolean;
}

export function createPreparedAnswers(freshness: Freshness): PreparedAnswers {
  const kept = new LRUCache<string, Prepared>({
    maxSize: KEPT_BYTES,
    sizeCalculation: (one, key) => one.body.length + key.length + 200,
  });
  const routes = new LRUCache<string, Route>(atMost(KEPT_URLS));
  const making = new Map<string, Promise<Prepared>>();

  const keyOf = (route: Route, exchange: Exchange, identity: Identity) =>
    `${identity.workspace} ${exchange.req.url} ${route.cache?.per?.(identity) ?? ''}`;
  const scopeOf = (route: Route, identity: Identity) => {
    const cache = route.cache as NonNullable<Route['cache']>;
    return [cache.models, cache.scope === 'all' ? 'all' : identity.workspace] as const;
  };

  return {
    routeOf: (url) => routes.get(url),
    answerNow(route, exchange, identity) {
      const prepared = kept.get(keyOf(route, exchange, identity));
      if (!prepared) return false;
      if (freshness.stampNow(...scopeOf(route, identity)) !== prepared.stamp) return false;
      send(exchange, prepared);
      return true;
    },
    async answer(route, exchange, identity, make) {
      const key = keyOf(route, exchange, identity);
      const stamp = await freshness.stamp(...scopeOf(route, identity));
      let prepared = kept.get(key);
      if (prepared?.stamp !== stamp) {
        const running = `${stamp} ${key}`;
        let one = making.get(running);
        if (!one) {
          // The stamp is older than the read: if something moves in between, the body is new and the stamp is not, and
          // the next request makes it again. Never the other way round.
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
        prepared = await one;
        kept.set(key, prepared);
        routes.set(exchange.req.url ?? '', route);
      }
      send(exchange, prepared);
    },
  };
}

function send({ req, res }: Exchange, { body, etag }: Prepared): void {
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
