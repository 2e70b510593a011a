/**
 * The HTTP server. Every request passes the front handler (id, security headers, host and Origin checks, log, metrics).
 * A GET with a cached response is served there, after the same authorization as everywhere else. Other requests go to
 * their route; a request without a route goes to Express, where further handlers can be mounted.
 */
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import cookieParser from 'cookie-parser';
import express from 'express';
import { Histogram } from 'prom-client';
import { InjectionRefused } from '../../commands/agents/injection.ts';
import { agentSpokenFor } from '../../commands/agents/names.ts';
import { acknowledgedOf, type CommandContext, type Intents } from '../../commands/handler.ts';
import { AppError, forbidden, invalid, invalidField, OtherTenant, unauthenticated } from '../../shared/errors.ts';
import { DEFAULT_TENANT } from '../../shared/events/metadata.ts';
import { type Identity, type Role, reaches } from '../../shared/identity.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { idsOf } from '../../shared/ports/tracing.ts';
import { BODY_BOUNDS, storageProblem } from '../../shared/storable.ts';
import { requestFault, routeFault } from '../auth/agent-keys.ts';
import { createIdentify, keyOf } from '../auth/identify.ts';
import { tokensOf } from '../auth/sessions.ts';
import type { Services } from '../services.ts';
import { momentOf, pastFault, sendPast, servicesAt, showMoment } from './as-of.ts';
import { readJson } from './body.ts';
import { handleClientErrors } from './client-errors.ts';
import { readAtOf, showPosition } from './consistency.ts';
import { beginContext, originOf, type RequestContext } from './context.ts';
import { sendContent, sendError, sendJson } from './errors.ts';
import { hostAllowed, hostKnown, isCrossSite, isSafe, readTarget } from './hosts.ts';
import { idempotencyKeyOf, runOnce } from './idempotency.ts';
import { callInside } from './inside.ts';
import { createLimiter, LIMITS, type LimitClass } from './limits.ts';
import { type Asked, createMatcher, type OtherMethods } from './matching.ts';
import { pageOf, written } from './pages.ts';
import { createReadBudget } from './read-budget.ts';
import { type CachedRoute, createResponseCache } from './response-cache.ts';
import { type InnerCall, type Route, type RouteResponse, sharedOf } from './route.ts';
import { securityHeaders } from './security-headers.ts';
import { endWhenStalled } from './stalled.ts';
import { asSpans } from './tracing.ts';

/** A stream does not end by itself, so a HEAD request gets its headers without running the handler. */
const STREAM = 'text/event-stream';

/** @throws ZodError, or AppError 400 when a parameter that is refused was given twice */
function queryOf({ query: schema }: Route, query: Asked['query']): unknown {
  if (!schema) return {};
  const { success, data, error } = schema.safeParse(query);
  if (success) return data;
  const twice = error.issues.find(({ path: [name = ''] }) => Array.isArray(query[String(name)]));
  throw twice ? invalidField(String(twice.path[0]), 'must be given only once') : error;
}

export interface ApiServer {
  readonly server: Server;
  /** For middleware: it gets the requests whose path has no route, after the checks for all requests. */
  readonly app: express.Express;
}

export function createApiServer(routes: readonly Route[], services: Services): ApiServer {
  const { settings, log, securityEvents, isolation } = services;
  const identify = createIdentify(services);
  const checkLimit = createLimiter(services, (name, context) => securityEvents.rateLimitHit(context, name));
  const budget = createReadBudget({ now: services.now, isOff: settings.disableRateLimit }, (context) =>
    securityEvents.rateLimitHit(context, 'read-bytes'),
  );
  const cache = createResponseCache(services.freshness, services.now, budget);
  const writing = scopedTo(services, { displayNames: services.namesAtOnce });
  const parseCookies = cookieParser();
  // A list whose pages have no bound is refused here.
  for (const route of routes) pageOf(route);
  const match = createMatcher(routes);
  const headers = securityHeaders(settings);
  // No field of these lines can hold a secret, and searching for secrets took longer than the rest of a line.
  const requests = log.child({}, { redact: [] });
  const durations = new Histogram({
    name: 'signalbox_http_request_seconds',
    help: 'Duration of HTTP requests by route, method and status',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [services.metrics],
  });

  const isStrict = (context: RequestContext, { workspace }: Identity) =>
    isolation.isStrict(workspace, context.startedAt);

  /** @throws AppError 403 to a caller of a strict workspace */
  async function checkShared(
    context: RequestContext,
    identity: Identity,
    path: string,
    resource: string,
  ): Promise<void> {
    if (!(await isStrict(context, identity))) return;
    securityEvents.isolationDenied(context, `${context.req.method} ${path}`, resource);
    throw forbidden(
      `Your workspace is strictly isolated and has no access to what workspaces share (${resource}); use a workspace with the isolation "shared".`,
    );
  }

  /** @throws AppError 403 when there is a fault */
  function refuseAgent(context: RequestContext, { path }: Route, fault: string | undefined): void {
    if (fault === undefined) return;
    securityEvents.agentAccessDenied(context, `${context.req.method} ${path}`);
    throw forbidden(fault);
  }

  /**
   * Checks credential, role, scope, isolation, access for agents, and limit, in this order.
   *
   * @throws AppError 401, 403, 429
   */
  async function authorize(route: Route, context: RequestContext): Promise<Identity | null> {
    context.route = route.path;
    if (route.limit && 'first' in LIMITS[route.limit]) await checkLimit(route.limit, context);
    if (context.identity === undefined) {
      context.identity = await identify(context).catch((error) => {
        // Probes and sign-in must work even if the request carries a credential that cannot be looked up.
        if (route.access === 'public') return null;
        throw error;
      });
    }
    const identity = context.identity ?? null;
    if (route.access !== 'public') {
      if (!identity)
        throw unauthenticated(
          'Authentication required: send a session cookie from POST /api/auth/login or an API key in the x-api-key header.',
        );
      const needed: Role = route.access === 'any' ? 'viewer' : route.access;
      if (!reaches(identity.role, needed)) {
        securityEvents.accessDenied(context, `${context.req.method} ${route.path}`, needed);
        throw forbidden(`This call requires the role ${needed}; yours is ${identity.role}.`);
      }
      if (route.scope === 'deployment' && identity.tenant !== DEFAULT_TENANT)
        throw new OtherTenant(
          'This call concerns the whole deployment: only callers of the default tenant may make it.',
        );
    }
    const shared = sharedOf(route);
    if (shared !== undefined && identity) await checkShared(context, identity, route.path, shared);
    if (identity) refuseAgent(context, route, routeFault(route, identity));
    if (route.limit && !('first' in LIMITS[route.limit])) await checkLimit(route.limit, context);
    return identity;
  }

  async function handleRoute(route: Route, context: RequestContext, { params, query }: Asked): Promise<void> {
    if (route.writes) refuseUnlessMeant(context);
    if (route.knownHost && !hostKnown(context, settings)) throw forbidden(UNKNOWN_HOST);
    const identity = await authorize(route, context);
    const body = await readBody(route, context, query);
    // A write may have to read what it has just appended, so it reads at the current head of the log.
    const at = isRead(route) ? await readAtOf(context, services.readModels) : undefined;
    const isAsOf = query.as_of !== undefined;
    const parsed = queryOf(route, query);
    const fault = isAsOf ? pastFault(route, parsed) : undefined;
    if (fault !== undefined) throw invalid(`as_of: ${fault}. Leave as_of out.`);
    const moment = isAsOf ? await momentOf(services, query.as_of) : undefined;
    const reads = at ? services.reads.at(at) : services.reads;
    const call = {
      params: route.params ? route.params.parse(params) : {},
      query: parsed,
      body,
      // Null only on public routes; the others have been authorized.
      // Secrets of now may be shown to admins; past ones were replaced or removed, and are shown to no caller.
      identity: (moment && identity ? { ...identity, seesSecrets: false } : identity) as Identity,
      context,
      services: moment ? servicesAt(services, moment) : isRead(route) ? scopedTo(services, { reads }) : writing,
      checkShared: (resource: string) => checkShared(context, identity as Identity, route.path, resource),
      isStrict: async () => identity !== null && (await isStrict(context, identity)),
      isOfDeployment: async () => identity?.tenant === DEFAULT_TENANT && !(await isStrict(context, identity)),
      checkLimit: (name: LimitClass) => checkLimit(name, context),
      callInside: (inner: InnerCall) =>
        callInside(context, inner, (within, asked) =>
          handleRoute(inner.route, within, asked).catch((error) => refuse(within, error)),
        ),
    };
    if (context.req.method === 'HEAD' && route.responses[200]?.type === STREAM) {
      sendResponse(context, { text: { type: STREAM, content: '' } });
      return;
    }
    // The agents' owners are those of now, as for every permission.
    const asNow = moment ? { ...call, services } : call;
    if (identity?.kind === 'agent-key') refuseAgent(context, route, await requestFault(route, asNow));
    const agent = await spokenFor(route, identity);
    const isLarge = isRead(route) && route.responses[200]?.type !== STREAM;
    const handleAny = async (asked: Parameters<Route['handle']>[0]) => {
      if (!isLarge || !identity) return route.handle(asked);
      const compute = async () => {
        const response = await route.handle(asked);
        return 'handled' in response ? response : written(response, pageOf(route));
      };
      return budget.run(context, { identity, route }, compute, (response) =>
        'handled' in response ? 0 : Buffer.byteLength(response.text?.content ?? ''),
      );
    };
    const handle = async (intents?: Intents) => {
      const origin = originOf(context, agent);
      const command: CommandContext = intents ? { origin, intents, step: 0 } : { origin, step: 0 };
      try {
        const response = await handleAny({ command, ...call });
        return 'handled' in response || !intents ? response : withPosition(response, acknowledgedOf(origin));
      } finally {
        if (!moment) showPosition(context, isRead(route) ? reads.position : acknowledgedOf(origin) || undefined);
      }
    };
    if (moment) {
      showMoment(context, moment);
      const response = await handle();
      if (!('handled' in response)) sendPast(context, response);
      return;
    }
    if (at && isCached(route) && identity && !route.cache.unless?.(call.query)) {
      const { params, query, services } = call;
      await cache.send(route, context, { identity, at, params, query }, async (caller) => {
        try {
          return await route.cache.respond({ params, query, identity: caller, services });
        } finally {
          showPosition(context, reads.position);
        }
      });
      return;
    }
    const key = route.method === 'post' && !route.carriesCalls ? idempotencyKeyOf(context) : undefined;
    const response = key
      ? await runOnce(
          services.idempotency,
          key,
          context,
          body,
          async (intents) => (await handle(intents)) as RouteResponse,
        )
      : await handle();
    if (!('handled' in response)) sendResponse(context, response);
  }

  /** For the events of a write: the agent that a caller names whose credential is not that agent's key. */
  async function spokenFor(route: Route, identity: Identity | null): Promise<number | undefined> {
    if (route.method === 'get' && !route.writes) return undefined;
    if (identity === null || identity.kind === 'agent-key') return undefined;
    return agentSpokenFor(services.commands, identity);
  }

  async function readBody(route: Route, { req, res }: RequestContext, query: Asked['query']): Promise<unknown> {
    if (!route.body) return undefined;
    const sent = await readJson(req, res);
    // Some clients and proxies send no body with DELETE.
    const inQuery = route.method === 'delete' && !route.query && Object.keys(query).length > 0;
    const value = sent === undefined && inQuery ? { ...query } : sent;
    if (value === undefined) {
      if (route.bodyOptional) return route.body.parse({});
      throw invalid(
        `JSON body required: send the fields of this call as one JSON object${route.method === 'delete' ? ', or in the query' : ''}.`,
      );
    }
    // Checked first, because later steps may walk through the body recursively.
    const problem = storageProblem(value, BODY_BOUNDS);
    if (problem) throw invalidField(problem.path.join('.'), problem.reason);
    return route.body.parse(value);
  }

  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  async function requireIdentity(here: readonly Route[], context: RequestContext): Promise<void> {
    context.identity ??= await identify(context);
    if (!context.identity && !here.some((route) => route.access === 'public')) {
      throw unauthenticated('Authentication required: send a session cookie or an API key.');
    }
  }
  const facade = app as (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

  async function refuseMethod(context: RequestContext, { path, routes: here }: OtherMethods): Promise<never> {
    context.route = path;
    await requireIdentity(here, context);
    const methods = here.map((route) => route.method.toUpperCase()).join(', ');
    throw new AppError(405, `${context.req.method} is not supported here; use ${methods}.`, {
      headers: { Allow: methods },
    });
  }

  async function refusePath(context: RequestContext): Promise<never> {
    const path = (context.req.url ?? '').split(/[?#]/, 1)[0] as string;
    if (path.startsWith('/api/')) await requireIdentity([], context);
    throw new AppError(404, `No such endpoint: ${context.req.method} ${path}. See /api/docs for a list.`);
  }

  function front(req: IncomingMessage, res: ServerResponse): void {
    begun(res);
    const context = beginContext(req, res, settings);
    res.setHeader('X-Request-Id', context.id);
    for (const [name, value] of headers) res.setHeader(name, value);
    res.once('close', () => finished(context));
    endWhenStalled(res, context.stallMs);
    // A write after the end emits an error, for example when an event arrives while streams are being closed.
    res.on('error', (error) => log.debug({ err: error, requestId: context.id }, 'could not write a response'));
    if (!readTarget(req)) {
      sendJson(res, 400, { error: 'The request target is invalid: send a path, such as /api/docs.' });
      return;
    }
    if (req.headers.host === undefined && req.httpVersion === '1.1') {
      sendJson(res, 400, { error: 'The Host header is missing; HTTP/1.1 requires it.' });
      return;
    }
    if (!hostAllowed(context, settings)) {
      res.statusCode = 403;
      res.setHeader('Content-Type', 'text/plain; charset=utf-8');
      res.end('Forbidden');
      return;
    }
    parseCookies(req as express.Request, res as express.Response, () => admit(context));
  }

  /** Admits a request whose cookies are parsed. */
  function admit(context: RequestContext): void {
    const { req, res } = context;
    if (!isSafe(req.method) && isForged(context)) {
      sendJson(res, 403, { error: CROSS_SITE });
      return;
    }
    const route = req.method === 'GET' ? cache.routeOf(req.url ?? '') : undefined;
    if (!route) {
      dispatch(context);
      return;
    }
    sendCached(route, context).then(
      (isSent) => {
        if (!isSent) dispatch(context);
      },
      (error) => refuse(context, error),
    );
  }

  async function sendCached(route: CachedRoute, context: RequestContext): Promise<boolean> {
    const identity = await authorize(route, context);
    if (!identity) return false;
    return cache.sendCached(route, context, identity, await readAtOf(context, services.readModels));
  }

  function refuse(context: RequestContext, error: unknown): void {
    if (error instanceof OtherTenant)
      securityEvents.tenantAccessDenied(context, `${context.req.method} ${context.route}`);
    if (error instanceof InjectionRefused) securityEvents.injectionRefused(context, error.rules);
    sendError(context, error, log);
  }

  function dispatch(context: RequestContext): void {
    const { req, res } = context;
    const refused = (error: unknown) => refuse(context, error);
    let found: ReturnType<typeof match>;
    try {
      found = match(req.method ?? '', req.url ?? '');
    } catch (error) {
      refused(error);
      return;
    }
    if (found?.route) handleRoute(found.route, context, found).catch(refused);
    else if (found) refuseMethod(context, found).catch(refused);
    else {
      facade(req, res, (error) => {
        if (error === undefined) refusePath(context).catch(refused);
        else refused(error);
      });
    }
  }

  function finished({ req, res, route, startedAt, id, ip, identity, traceparent }: RequestContext): void {
    const ms = performance.now() - startedAt;
    durations.observe({ method: req.method ?? '', route, status: String(res.statusCode) }, ms / 1_000);
    requests.info(
      {
        requestId: id,
        method: req.method,
        url: req.url?.split('?')[0],
        route,
        status: res.statusCode,
        ms: Math.round(ms * 10) / 10,
        ip,
        caller: identity?.username,
        ...(traceparent !== undefined && idsOf(traceparent)),
      },
      'request',
    );
  }

  // `front` refuses requests without a Host header itself.
  const server = createHttpServer(
    { requestTimeout: 60_000, headersTimeout: 20_000, keepAliveTimeout: 65_000, requireHostHeader: false },
    asSpans(front),
  );
  const begun = handleClientErrors(server, log);
  server.maxRequestsPerSocket = 0;
  return { server, app };
}

/** For responses that are stored and later sent again: they keep their position. */
const withPosition = (response: RouteResponse, position: Position): RouteResponse =>
  position === 0
    ? response
    : { ...response, headers: { ...response.headers, 'X-Signalbox-Position': String(position) } };

const isCached = (route: Route): route is CachedRoute => route.cache !== undefined;
const isRead = ({ method, writes }: Route): boolean => method === 'get' && !writes;

/** The services, with some of them replaced. */
const scopedTo = (services: Services, others: Partial<Services>): Services =>
  Object.assign(Object.create(services) as Services, others);

const CROSS_SITE =
  'CSRF check failed: the request comes from a page of another site, or its Origin header does not name the host and port of the request; a proxy must pass on the Host header as it is, with the port.';

const UNKNOWN_HOST =
  'This call is served only under localhost, 127.0.0.1, [::1] or a host in MC_ALLOWED_HOSTS: use one of them, or add this host to MC_ALLOWED_HOSTS.';

const isForged = (context: RequestContext): boolean =>
  isCrossSite(context, keyOf(context) !== undefined && tokensOf(context).length === 0);

/** A GET that changes something. @throws AppError 403 from another origin, 405 for HEAD */
function refuseUnlessMeant(context: RequestContext): void {
  const { req, res } = context;
  if (req.method === 'HEAD') {
    res.setHeader('Allow', 'GET');
    throw new AppError(405, 'HEAD is not supported here, because the call changes something; use GET.');
  }
  if (isForged(context)) throw forbidden(CROSS_SITE);
}

function sendResponse({ res }: RequestContext, response: RouteResponse): void {
  const { status = 200, headers } = response;
  for (const [name, value] of Object.entries(headers ?? {})) res.setHeader(name, value as string | string[]);
  sendContent(res, status, response);
}
