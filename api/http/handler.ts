/** The handler of a route: what happens between the request that Express hands over and the response. */
import type { RequestHandler } from 'express';
import { agentSpokenFor } from '../../commands/agents/names.ts';
import { acknowledgedOf, type CommandContext, type Intents } from '../../commands/handler.ts';
import { PAGE_BYTES, TOOL_PAGE_BYTES } from '../../shared/contract/common.ts';
import { AppError, forbidden, invalid, invalidField } from '../../shared/errors.ts';
import { DEFAULT_TENANT } from '../../shared/events/metadata.ts';
import type { Identity } from '../../shared/identity.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { BODY_BOUNDS, storageProblem } from '../../shared/storable.ts';
import { requestFault } from '../auth/agent-keys.ts';
import type { Services } from '../services.ts';
import { checkReach, momentOf, pastFault, sendPast, servicesAt, showMoment } from './as-of.ts';
import type { Authorization } from './authorization.ts';
import { readJson } from './body.ts';
import { readAtOf, showPosition } from './consistency.ts';
import { originOf, type RequestContext } from './context.ts';
import { refuseForged } from './cross-site.ts';
import { sendContent } from './errors.ts';
import { hostKnown } from './hosts.ts';
import { idempotencyKeyOf, runOnce } from './idempotency.ts';
import { callInside } from './inside.ts';
import type { LimitClass } from './limits.ts';
import { pageOf, written } from './pages.ts';
import type { PublicUrl } from './public-url.ts';
import type { ReadBudget } from './read-budget.ts';
import type { CachedRoute, ResponseCache } from './response-cache.ts';
import { type Asked, checkRules, type InnerCall, type Route, type RouteResponse } from './route.ts';

/** A stream does not end by itself, so a HEAD request gets its headers without running the handler. */
const STREAM = 'text/event-stream';

const UNKNOWN_HOST =
  'This call is served only under localhost, 127.0.0.1, [::1] or a host in MC_ALLOWED_HOSTS: use one of them, or add this host to MC_ALLOWED_HOSTS.';

export interface HandlerParts {
  readonly services: Services;
  readonly authorization: Authorization;
  readonly budget: ReadBudget;
  readonly cache: ResponseCache;
  /** Writes the response for a failed call within a request. */
  readonly refuse: (context: RequestContext, error: unknown) => void;
}

/** Makes the handlers of routes. */
export function createHandlers(parts: HandlerParts): (route: Route) => RequestHandler {
  const { services, authorization, budget, cache, refuse } = parts;
  const { authorize, checkShared, checkLimit, isStrict } = authorization;
  const writing = scopedTo(services, { displayNames: services.namesAtOnce });

  async function handle(route: Route, context: RequestContext, { params, query }: Asked): Promise<void> {
    if (route.writes) refuseUnlessMeant(context, services.settings);
    if (route.knownHost && !hostKnown(context, services.settings)) throw forbidden(UNKNOWN_HOST);
    const identity = await authorize(route, context);
    const body = await readBody(route, context, query);
    // A write may have to read what it has just appended, so it reads at the current head of the log.
    const at = isRead(route) ? await readAtOf(context, services.readModels) : undefined;
    const isAsOf = query.as_of !== undefined;
    const parsed = queryOf(route, query);
    const fault = isAsOf ? pastFault(route, parsed) : undefined;
    if (fault !== undefined) throw invalid(`as_of: ${fault}. Leave as_of out.`);
    const moment = isAsOf ? await momentOf(services, query.as_of) : undefined;
    if (moment && identity) await checkReach(services, identity, moment);
    const reads = at ? services.reads.response(at) : services.reads;
    const pageBytes = context.via === 'mcp' ? TOOL_PAGE_BYTES : PAGE_BYTES;
    const call = {
      params: route.params ? route.params.parse(params) : {},
      query: parsed,
      body,
      // Null only on public routes; the others have been authorized.
      // Secrets of now may be shown to admins; past ones were replaced or removed, and are shown to no caller.
      identity: (moment && identity ? { ...identity, seesSecrets: false } : identity) as Identity,
      context,
      services: moment
        ? scopedTo(servicesAt(services, moment, identity as Identity), { pageBytes })
        : isRead(route)
          ? scopedTo(services, { reads, pageBytes })
          : writing,
      checkShared: (resource: string) => checkShared(context, identity as Identity, route.path, resource),
      isStrict: async () => identity !== null && (await isStrict(context, identity)),
      isOfDeployment: async () => identity?.tenant === DEFAULT_TENANT && !(await isStrict(context, identity)),
      checkLimit: (name: LimitClass) => checkLimit(name, context),
      callInside: (inner: InnerCall) =>
        callInside(context, inner, (within, asked) =>
          handle(inner.route, within, asked).catch((error) => refuse(within, error)),
        ),
    };
    if (context.req.method === 'HEAD' && route.responses[200]?.type === STREAM) {
      sendResponse(context, { text: { type: STREAM, content: '' } });
      return;
    }
    // The agents' owners are those of now, as for every permission.
    const asNow = moment ? { ...call, services } : call;
    if (identity?.kind === 'agent-key') authorization.refuseAgent(context, route, await requestFault(route, asNow));
    const agent = await spokenFor(route, context, identity);
    const isLarge = isRead(route) && route.responses[200]?.type !== STREAM;
    const handleAny = async (asked: Parameters<Route['handle']>[0]) => {
      if (!isLarge || !identity) return route.handle(asked);
      const compute = async () => {
        const response = await route.handle(asked);
        return 'handled' in response ? response : written(response, pageOf(route), pageBytes);
      };
      return budget.run(context, { identity, route }, compute, (response) =>
        'handled' in response ? 0 : Buffer.byteLength(response.text?.content ?? ''),
      );
    };
    const run = async (intents?: Intents) => {
      const origin = originOf(context, agent);
      const { startedAt: arrivedAt } = context;
      const command: CommandContext = intents
        ? { origin, intents, arrivedAt, step: 0 }
        : { origin, arrivedAt, step: 0 };
      try {
        const response = await handleAny({ command, ...call });
        return 'handled' in response || !intents ? response : withPosition(response, acknowledgedOf(origin));
      } finally {
        if (!moment && isRead(route)) showPosition(context, reads.position, reads.isExact);
        else if (!moment) showPosition(context, acknowledgedOf(origin) || undefined);
      }
    };
    if (moment) {
      showMoment(context, moment);
      const response = await run();
      if (!('handled' in response)) sendPast(context, response);
      return;
    }
    if (at && isCached(route) && identity && !route.cache.unless?.(call.query)) {
      const { params, query, services } = call;
      await cache.send(route, context, { identity, at, params, query, pageBytes }, async (caller) => {
        try {
          const content = await route.cache.respond({ params, query, identity: caller, services });
          return { content, position: reads.position, isExact: reads.isExact };
        } finally {
          showPosition(context, reads.position, reads.isExact);
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
          async (intents) => (await run(intents)) as RouteResponse,
        )
      : await run();
    if (!('handled' in response)) sendResponse(context, response);
  }

  /** For the events of a write: the agent that a caller names whose credential is not that agent's key. */
  async function spokenFor(
    route: Route,
    { startedAt }: RequestContext,
    identity: Identity | null,
  ): Promise<number | undefined> {
    if (route.method === 'get' && !route.writes) return undefined;
    if (identity === null || identity.kind === 'agent-key') return undefined;
    return agentSpokenFor(services.commands, identity, startedAt);
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

  return (route) => {
    checkRules(route);
    // A list whose pages have no bound is refused here.
    pageOf(route);
    return (req) => handle(route, req.context, req);
  };
}

/** @throws ZodError, or AppError 400 when a parameter that is refused was given twice */
function queryOf({ query: schema }: Route, query: Asked['query']): unknown {
  if (!schema) return {};
  const { success, data, error } = schema.safeParse(query);
  if (success) return data;
  const twice = error.issues.find(({ path: [name = ''] }) => Array.isArray(query[String(name)]));
  throw twice ? invalidField(String(twice.path[0]), 'must be given only once') : error;
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

/** A GET that changes something. @throws AppError 403 from another origin, 405 for HEAD */
function refuseUnlessMeant(context: RequestContext, settings: PublicUrl): void {
  const { req, res } = context;
  if (req.method === 'HEAD') {
    res.setHeader('Allow', 'GET');
    throw new AppError(405, 'HEAD is not supported here, because the call changes something; use GET.');
  }
  refuseForged(context, settings);
}

function sendResponse({ res }: RequestContext, response: RouteResponse): void {
  const { status = 200, headers } = response;
  for (const [name, value] of Object.entries(headers ?? {})) res.setHeader(name, value as string | string[]);
  sendContent(res, status, response);
}
