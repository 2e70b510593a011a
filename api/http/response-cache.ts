/**
 * Caches the body of a GET until a projection changes from which it was built. Credential, role and limit are checked
 * before a response is served from the cache.
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { atMost } from '../../shared/bounded.ts';
import { type Identity, taskViewOf } from '../../shared/identity.ts';
import type { Freshness, ReadAt } from '../../shared/ports/read-models.ts';
import { seconds } from '../../shared/time.ts';
import { showPosition } from './consistency.ts';
import type { RequestContext } from './context.ts';
import { fieldsOf, type Route } from './route.ts';

/** Total of all bodies, bytes. */
const MAX_BYTES = 48_000_000;
/** Routes are remembered by URL, so that a known URL skips the router. */
const MAX_URLS = 10_000;

const withTasks = (models: readonly string[]): readonly string[] =>
  models.includes(TASKS) ? models : [...models, TASKS];
/** The read model that has the owners of tasks. Responses to a caller that sees only one agent's tasks depend on it. */
const TASKS = 'tasks';

interface CachedResponse {
  readonly stamp: string;
  readonly body: Buffer;
  readonly etag: string;
}

export type CachedRoute = Route & Required<Pick<Route, 'cache'>>;

/** Builds a body from the declared fields of the caller; `caller` has no other fields. */
type Make = (caller: Identity) => Promise<unknown>;

export interface ResponseCache {
  /** The route of a URL that was served from the cache before. */
  routeOf(url: string): CachedRoute | undefined;
  /** Responds at once with a cached body if it is current at `at`; false otherwise. */
  sendCached(route: CachedRoute, context: RequestContext, identity: Identity, at: ReadAt): Promise<boolean>;
  /** The same, otherwise with the result of `make` (called once for concurrent requests for the same response). */
  send(route: CachedRoute, context: RequestContext, identity: Identity, at: ReadAt, make: Make): Promise<void>;
}

/** @param now Unix ms */
export function createResponseCache(freshness: Freshness, now: () => number): ResponseCache {
  const responses = new LRUCache<string, CachedResponse>({
    maxSize: MAX_BYTES,
    sizeCalculation: (one, key) => one.body.length + key.length + 200,
  });
  const routes = new LRUCache<string, CachedRoute>(atMost(MAX_URLS));
  const making = new Map<string, Promise<CachedResponse>>();

  const keyOf = ({ req }: RequestContext, caller: object) => `${req.url} ${JSON.stringify(caller)}`;
  const callerOf = ({ cache }: CachedRoute, identity: Identity) => fieldsOf(identity, cache.caller);
  /** The stamp for which a body is current, and the position that it shows. */
  async function currentAt({ cache }: CachedRoute, identity: Identity, at: ReadAt) {
    const { models, scope, caller, clock } = cache;
    const isBound = caller.includes('agentName') && taskViewOf(identity).agent !== null;
    const workspace = scope === 'all' ? 'all' : identity.workspace;
    const { value, position } = await freshness.stamp(isBound ? withTasks(models) : models, workspace, at);
    return { stamp: clock ? `${value} ${seconds(now())}` : value, position };
  }

  return {
    routeOf: (url) => routes.get(url),
    async sendCached(route, context, identity, at) {
      const key = keyOf(context, callerOf(route, identity));
      if (!responses.has(key)) return false;
      const { stamp, position } = await currentAt(route, identity, at);
      const kept = responses.get(key);
      if (kept?.stamp !== stamp) return false;
      showPosition(context, position);
      send(context, kept);
      return true;
    },
    async send(route, context, identity, at, make) {
      const caller = callerOf(route, identity);
      const key = keyOf(context, caller);
      const { stamp, position } = await currentAt(route, identity, at);
      let response = responses.get(key);
      if (response?.stamp !== stamp) {
        const running = `${stamp} ${key}`;
        let one = making.get(running);
        if (!one) {
          // The stamp is taken before the read. If a change happens in between, a new body gets an old stamp, and the
          // next request builds it again; an old body never gets a new stamp.
          one = make(caller).then((value) => {
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
        routes.set(context.req.url ?? '', route);
      }
      showPosition(context, position);
      send(context, response);
    },
  };
}

function send({ req, res }: RequestContext, { body, etag }: CachedResponse): void {
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
