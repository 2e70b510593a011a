/**
 * Caches the body of a GET until a projection changes from which it was built. Credential, role and limit are checked
 * before a response is served from the cache.
 */
import { createHash } from 'node:crypto';
import type { RequestHandler } from 'express';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { atMost } from '../../shared/bounded.ts';
import { type Identity, taskViewOf } from '../../shared/identity.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import type { Freshness, ReadAt, ReadModels } from '../../shared/ports/read-models.ts';
import { seconds } from '../../shared/time.ts';
import type { Authorization } from './authorization.ts';
import { readAtOf, showPosition } from './consistency.ts';
import type { RequestContext } from './context.ts';
import { jsonOf, pageOf, turnFor } from './pages.ts';
import type { ReadBudget } from './read-budget.ts';
import { fieldsOf, type Route } from './route.ts';

/** Total of all bodies, bytes. */
const MAX_BYTES = 48_000_000;
/** Routes are remembered by URL, so that a known URL skips the router. */
const MAX_URLS = 10_000;

const withTasks = (models: readonly string[]): readonly string[] =>
  models.includes(TASKS) ? models : [...models, TASKS];
/** The read model that has the owners of tasks. Responses to a caller that sees only one agent's tasks depend on it. */
const TASKS = 'tasks';

interface CachedResponse extends Pick<Made, 'position' | 'isExact'> {
  readonly stamp: string;
  readonly body: Buffer;
  readonly etag: string;
}

export type CachedRoute = Route & Required<Pick<Route, 'cache'>>;

/** What a route responds with, and what it has read. */
interface Made {
  readonly content: unknown;
  /** Undefined: it has read nothing. */
  readonly position: Position | undefined;
  /** False: parts of it may be of later positions. */
  readonly isExact: boolean;
}

/** Builds a body from the declared fields of the caller; `caller` has no other fields. */
type Make = (caller: Identity) => Promise<Made>;

/** What a request asks of a cached route. */
interface AskedOf {
  readonly identity: Identity;
  readonly at: ReadAt;
  /** As the route's schemas have read them. */
  readonly params: unknown;
  readonly query: unknown;
  readonly pageBytes: number;
}

/** A URL that was served from the cache before: its route, and what it asks for. */
interface KnownUrl {
  readonly route: CachedRoute;
  readonly asked: string;
}

export interface ResponseCache {
  /** The route of a URL that was served from the cache before. */
  routeOf(url: string): CachedRoute | undefined;
  /** Responds at once with a cached body if it is current at `at`; false otherwise. */
  sendCached(route: CachedRoute, context: RequestContext, identity: Identity, at: ReadAt): Promise<boolean>;
  /** The same, otherwise with the result of `make` (called once for concurrent requests for the same response). */
  send(route: CachedRoute, context: RequestContext, asked: AskedOf, make: Make): Promise<void>;
}

/** @param now Unix ms */
export function createResponseCache(
  freshness: Pick<Freshness, 'stamp'>,
  now: () => number,
  budget: ReadBudget,
): ResponseCache {
  const responses = new LRUCache<string, CachedResponse>({
    maxSize: MAX_BYTES,
    sizeCalculation: (one, key) => one.body.length + key.length + 200,
  });
  const urls = new LRUCache<string, KnownUrl>(atMost(MAX_URLS));
  const making = new Map<string, Promise<CachedResponse>>();

  /** The parameters as they were read: unknown ones are not part of it, and each default has one form. */
  const askedOf = ({ path }: CachedRoute, { params, query, pageBytes }: AskedOf) =>
    `${path} ${JSON.stringify([params, query, pageBytes])}`;
  const callerOf = ({ cache }: CachedRoute, identity: Identity) => fieldsOf(identity, cache.caller);
  const keyOf = (asked: string, caller: object) => `${asked} ${JSON.stringify(caller)}`;
  /** The stamp for which a body is current, and the position that it shows. */
  async function currentAt({ cache }: CachedRoute, identity: Identity, at: ReadAt) {
    const { models, scope, caller, clock } = cache;
    const isBound = caller.includes('agentName') && taskViewOf(identity).agent !== null;
    const workspace = scope === 'all' ? 'all' : identity.workspace;
    const { value, position } = await freshness.stamp(isBound ? withTasks(models) : models, workspace, at);
    return { stamp: clock ? `${value} ${seconds(now())}` : value, position };
  }

  /** The response for a key, computed once for concurrent requests. */
  function made(
    stamp: string,
    key: string,
    compute: () => Promise<Omit<CachedResponse, 'stamp' | 'etag'>>,
  ): Promise<CachedResponse> {
    const running = `${stamp} ${key}`;
    const known = making.get(running);
    if (known) return known;
    // The stamp is taken before the read. If a change happens in between, a new body gets an old stamp, and the next
    // request builds it again; an old body never gets a new stamp.
    const one = compute().then(async (response) => {
      await turnFor(response.body);
      return { ...response, stamp, etag: `W/"${createHash('sha1').update(response.body).digest('base64url')}"` };
    });
    making.set(running, one);
    const end = () => making.delete(running);
    one.then(end, end);
    return one;
  }

  return {
    routeOf: (url) => urls.get(url)?.route,
    async sendCached(route, context, identity, at) {
      const asked = urls.get(context.req.originalUrl)?.asked;
      if (asked === undefined || wantsNew(context)) return false;
      const key = keyOf(asked, callerOf(route, identity));
      if (!responses.has(key)) return false;
      const { stamp, position } = await currentAt(route, identity, at);
      const kept = responses.get(key);
      if (kept?.stamp !== stamp) return false;
      show(context, kept, position);
      await send(context, kept);
      return true;
    },
    async send(route, context, asking, make) {
      const { identity, at, pageBytes } = asking;
      const caller = callerOf(route, identity);
      const asked = askedOf(route, asking);
      const key = keyOf(asked, caller);
      const { stamp, position } = await currentAt(route, identity, at);
      let response = responses.get(key);
      const isNew = wantsNew(context);
      if (isNew || response?.stamp !== stamp) {
        response = await budget.run(
          context,
          { identity, route },
          // Meanwhile, another request may have computed it.
          async () => {
            const kept = responses.get(key);
            if (!isNew && kept?.stamp === stamp) return kept;
            return made(stamp, key, async () => {
              const { content, ...shown } = await make(caller as Identity);
              return { body: await jsonOf(content, pageOf(route), pageBytes), ...shown };
            });
          },
          ({ body }) => body.length,
        );
        if (response.isExact) responses.set(key, response);
      }
      // A call within another request has other pages. An unknown parameter would make every value of it a URL of its own.
      if (!context.via && !hasUnknown(route, context.req.originalUrl))
        urls.set(context.req.originalUrl, { route, asked });
      show(context, response, position);
      await send(context, response);
    },
  };
}

/** @param current the position of the request's stamp: without changes since, the body shows it too */
const show = (context: RequestContext, { position = 0, isExact }: CachedResponse, current: Position): void =>
  showPosition(context, isExact ? Math.max(position, current) : position, isExact);

/** Browsers ask for this when a page is loaded again with all it consists of. */
const wantsNew = ({ req }: RequestContext): boolean => /\bno-cache\b/i.test(req.headers['cache-control'] ?? '');

/** Whether a URL has a parameter that its route does not know. */
function hasUnknown({ query }: CachedRoute, url: string): boolean {
  const at = url.indexOf('?');
  if (at < 0) return false;
  const known = query instanceof z.ZodObject ? query.shape : {};
  return [...new URLSearchParams(url.slice(at)).keys()].some((name) => !(name in known));
}

/** Serves a GET from the cache, behind the same checks as its handler; everything else goes on. */
export const serveCached =
  (
    cache: ResponseCache,
    { authorize }: Pick<Authorization, 'authorize'>,
    readModels: Pick<ReadModels, 'has'>,
  ): RequestHandler =>
  ({ method, originalUrl, context }, _res, next) => {
    const route = method === 'GET' ? cache.routeOf(originalUrl) : undefined;
    if (!route) {
      next();
      return undefined;
    }
    return (async () => {
      const identity = await authorize(route, context);
      const isSent =
        identity && (await cache.sendCached(route, context, identity, await readAtOf(context, readModels)));
      if (!isSent) next();
    })();
  };

async function send({ req, res }: RequestContext, { body, etag }: CachedResponse): Promise<void> {
  res.setHeader('ETag', etag);
  res.setHeader('Cache-Control', 'private, no-cache');
  if (req.headers['if-none-match'] === etag) {
    res.statusCode = 304;
    res.end();
    return;
  }
  await turnFor(body);
  res.statusCode = 200;
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  res.setHeader('Content-Length', body.length);
  res.end(req.method === 'HEAD' ? undefined : body);
}
