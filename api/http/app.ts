/** The Express app: every request passes it from top to bottom. */
import cookieParser from 'cookie-parser';
import express, { type ErrorRequestHandler, type Express, type Request, type RequestHandler } from 'express';
import helmet from 'helmet';
import { InjectionRefused } from '../../commands/agents/injection.ts';
import { type Networks, networksOf } from '../../shared/addresses.ts';
import { AppError, OtherTenant } from '../../shared/errors.ts';
import type { Services } from '../services.ts';
import type { ApiSettings } from '../settings.ts';
import { createAuthorization } from './authorization.ts';
import { beginContext, type RequestContext } from './context.ts';
import { checkSite } from './cross-site.ts';
import { sendError } from './errors.ts';
import { createHandlers } from './handler.ts';
import { checkHost } from './hosts.ts';
import { createReadBudget } from './read-budget.ts';
import { logRequests } from './request-log.ts';
import { createResponseCache, serveCached } from './response-cache.ts';
import type { Route } from './route.ts';
import { endWhenStalled } from './stalled.ts';
import { pathOf, traceRequests } from './tracing.ts';

/** Adds handlers of one's own, behind those of the routes: they get the requests that no route has. */
export type Mount = (app: Express) => void;

export function createApp(routes: readonly Route[], services: Services, mount: Mount = () => {}): Express {
  const { settings, log, securityEvents } = services;
  const authorization = createAuthorization(services);
  const budget = createReadBudget({ now: services.now, isOff: settings.disableRateLimit }, (context) =>
    securityEvents.rateLimitHit(context, 'read-bytes'),
  );
  const cache = createResponseCache(services.freshness, services.now, budget);
  const handlerOf = createHandlers({ services, authorization, budget, cache, refuse });

  function refuse(context: RequestContext, error: unknown): void {
    const call = `${context.req.method} ${context.route}`;
    if (error instanceof OtherTenant) securityEvents.tenantAccessDenied(context, call);
    if (error instanceof InjectionRefused) securityEvents.injectionRefused(context, error.rules);
    sendError(context, error, log);
  }

  const refuseMethod =
    (path: string, here: readonly Route[]): RequestHandler =>
    async ({ context }) => {
      context.route = path;
      if (!here.some(({ access }) => access === 'public')) await authorization.requireCaller(context);
      const methods = here.map(({ method }) => method.toUpperCase()).join(', ');
      throw new AppError(405, `${context.req.method} is not supported here; use ${methods}.`, {
        headers: { Allow: methods },
      });
    };

  const refusePath: RequestHandler = async ({ context, method, originalUrl }) => {
    const path = pathOf(originalUrl).split('#', 1)[0] as string;
    if (path.startsWith('/api/')) await authorization.requireCaller(context);
    throw new AppError(404, `No such endpoint: ${method} ${path}. See /api/docs for a list.`);
  };

  // Express finds an error handler by its four parameters.
  const sendFailure: ErrorRequestHandler = (error, req, _res, _next) => refuse(req.context, error);

  const isProxy = networksOf(settings.trustedProxies);
  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.set('query parser', 'simple').enable('case sensitive routing').set('trust proxy', isProxy);
  // One reading of the forwarded headers, also for what is mounted here.
  Object.defineProperty(app.request, 'ip', {
    configurable: true,
    get(this: Request) {
      return this.context.ip;
    },
  });

  app.use(beginRequest(settings, isProxy));
  app.use(cookieParser());
  app.use(traceRequests(authorization));
  app.use(logRequests(services));
  app.use(helmet(securityHeaders(settings)));
  app.use(checkHost(settings));
  app.use(checkSite(settings));
  app.use(serveCached(cache, authorization, services.readModels));
  for (const [path, here] of byPath(routes)) {
    const at = app.route(path.replace(/\{(\w+)\}/g, ':$1'));
    for (const route of here) at[route.method](handlerOf(route));
    at.all(refuseMethod(path, here));
  }
  mount(app);
  app.use(refusePath);
  app.use(sendFailure);
  return app;
}

const beginRequest =
  (settings: ApiSettings, isProxy: Networks): RequestHandler =>
  (req, res, next) => {
    const { id, stallMs } = beginContext(req, res, settings, isProxy);
    endWhenStalled(res, stallMs);
    res.setHeader('X-Request-Id', id);
    // Responses may carry credentials; those that may be cached override this header.
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('Permissions-Policy', 'camera=(), microphone=(), geolocation=()');
    next();
  };

/** Pages may only load from this server; Swagger UI's own style sheet is inline. */
const securityHeaders = ({ enableHsts }: Pick<ApiSettings, 'enableHsts'>): Parameters<typeof helmet>[0] => ({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'self'"],
      styleSrc: ["'self'", "'unsafe-inline'"],
      imgSrc: ["'self'", 'data:'],
      frameAncestors: ["'none'"],
      baseUri: ["'none'"],
      formAction: ["'self'"],
    },
  },
  frameguard: { action: 'deny' },
  referrerPolicy: { policy: 'strict-origin-when-cross-origin' },
  strictTransportSecurity: enableHsts && { maxAge: 31_536_000, includeSubDomains: true },
});

/** The routes of each path. Literal segments come before parameters: /api/agents/comms is not an agent called "comms". */
export function byPath(routes: readonly Route[]): readonly (readonly [path: string, routes: readonly Route[]])[] {
  const paths = new Map<string, Route[]>();
  for (const route of routes) paths.set(route.path, [...(paths.get(route.path) ?? []), route]);
  return [...paths].sort(([a], [b]) => (a.replaceAll('{', '~') < b.replaceAll('{', '~') ? -1 : 1));
}
