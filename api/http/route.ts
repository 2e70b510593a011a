/**
 * A route is data: its input, who may call it, its responses, and the handler. Express routing, validation and the
 * OpenAPI description are all derived from it.
 */
import type { OutgoingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { CommandContext } from '../../commands/handler.ts';
import type { AgentRef } from '../../shared/contract/agents/agents.ts';
import type { ERRORS } from '../../shared/contract/common.ts';
import type { Channel } from '../../shared/events/metadata.ts';
import type { Identity, Role } from '../../shared/identity.ts';
import type { Services } from '../services.ts';
import type { RequestContext } from './context.ts';
import type { LimitClass } from './limits.ts';

/** HTTP statuses of error responses. */
export type ErrorStatus = keyof typeof ERRORS;

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** `public`: no credential needed; `any`: any identity, like `viewer`, but the handler may require a session. */
export type Access = 'public' | 'any' | Role;

/**
 * How far a call reaches. `workspace`: the caller's own workspace, passed to every query and command. `deployment`: all
 * tenants; such a call requires a caller of the default tenant whose workspace is not strictly isolated, whatever the
 * caller's role.
 */
export type Scope = 'workspace' | 'deployment';

/**
 * What a route says about its callers, besides the role (`access`). `/api/docs` shows it, `checkRules` holds a route to
 * it at start, and a test calls every operation as each kind of caller.
 */
export interface Rules {
  /**
   * What an agent's key may do. `any`: what its role may; it sees only tasks that are assigned to its agent or created by
   * it. `tasks`: the same, and it changes only such tasks. `own`: only what concerns its own agent, unless it has the
   * scope `admin`. `admin`: nothing without the scope `admin`. `never`: nothing, whatever its scopes.
   */
  readonly agentKeys: 'any' | 'tasks' | 'own' | 'admin' | 'never';
  /** Callers of a workspace with strict isolation. `partly`: some calls are refused, by `checkShared`. */
  readonly strict: 'allowed' | 'partly' | 'refused';
  /** Whether `as_of` reads the past. `partly`: for some queries. */
  readonly past: 'all' | 'partly' | 'none';
  /**
   * Whether texts of the call reach the prompt of an agent. `refused`: one that tries to take the agent over gets 422.
   * `screened`: it is stored, and withheld when the prompt is made.
   */
  readonly prompts: 'none' | 'refused' | 'screened';
}

/** Rules of a GET without a credential. */
export const PUBLIC: Rules = { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' };

/** What a handler returns. `Body` is the type that its route declares for this status. */
export interface RouteResponse<Body = unknown> {
  readonly status?: number;
  /** JSON, unless `text` is given. */
  readonly body?: Body;
  readonly text?: { readonly type: string; readonly content: string | Buffer };
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

/** Returned by a handler that has written the response itself (streams, files). */
export const HANDLED: Handled = { handled: true };
interface Handled {
  readonly handled: true;
}

/** What a request asks of a route, as texts. */
export interface Asked {
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
}

/** A call of a route within a request (`inside.ts`). */
export interface InnerCall {
  readonly route: Route;
  readonly via: Channel;
  /** As texts, like the parameters of a request. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  /** JSON; undefined: no body. */
  readonly body?: unknown;
  readonly idempotencyKey?: string | undefined;
}

export interface InnerResponse {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly text: string;
}

export interface Call<P, Q, B, A extends Access = Access> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** The caller; null when a public route is called anonymously. */
  readonly identity: 'public' extends A ? Identity | null : Identity;
  readonly context: RequestContext;
  readonly services: Services;
  /**
   * Refuses callers of a strict workspace, for routes that use shared resources in some calls only.
   *
   * @throws AppError 403
   */
  readonly checkShared: (resource: string) => Promise<void>;
  /** Whether the caller's workspace is strictly isolated. */
  readonly isStrict: () => Promise<boolean>;
  /**
   * Whether the caller may make calls of the scope `deployment`; for routes that show or allow more to such a caller.
   */
  readonly isOfDeployment: () => Promise<boolean>;
  /** Checks a limit that applies to some calls of the route only. @throws AppError 429 */
  readonly checkLimit: (name: LimitClass) => Promise<void>;
  /** Makes another call of the API for the same caller; only for routes with `carriesCalls`. */
  readonly callInside: (call: InnerCall) => Promise<InnerResponse>;
  /** For `commands.execute`: carries the origin of the events and the request's idempotency. */
  readonly command: CommandContext;
}

export interface ResponseSpec {
  readonly description: string;
  readonly schema?: z.ZodType;
  /** Media type; default application/json. */
  readonly type?: string;
  /** Further media types in which the same is available, as text. */
  readonly also?: readonly string[];
}

export type Responses = Readonly<Record<number, ResponseSpec>>;

/** A schema's output with literals widened to their base types, since TypeScript widens them in async returns. */
type Widened<T> = T extends string
  ? string
  : T extends number
    ? number
    : T extends boolean
      ? boolean
      : T extends (infer E)[]
        ? readonly Widened<E>[]
        : T extends object
          ? { readonly [K in keyof T]: Widened<T[K]> }
          : T;
type BodyOf<S extends ResponseSpec> = S extends { readonly schema: infer Z extends z.ZodType }
  ? Widened<z.output<Z>>
  : unknown;
type BodyIn<R extends Responses> = BodyOf<R[keyof R & number]>;
/** One of the declared responses. The status may be omitted where 200 is among them. */
type RouteResponseOf<R extends Responses> = RouteResponse<BodyIn<R>> &
  (200 extends keyof R ? unknown : { readonly status: number });

/** Agents that a call concerns: one, several, or none; `unknown`: it concerns one, but which one is not known. */
export type Agents = AgentRef | readonly AgentRef[] | 'unknown' | undefined;

/** What a cached response may depend on: the handler that builds it gets nothing else. */
export interface CachedCall<P, Q, F extends keyof Identity> extends Pick<Call<P, Q, undefined>, 'params' | 'query'> {
  /** The declared fields of the caller. */
  readonly identity: Pick<Identity, F>;
  readonly services: Services;
}

/** How the responses of a route are cached. */
interface Caching<Q, F extends keyof Identity> {
  /** Projections on which responses depend. Responses are cached until one of these changes. */
  readonly models: readonly string[];
  /** Default: `workspace`, only changes in the caller's workspace count. */
  readonly scope?: 'workspace' | 'all';
  /** Fields of the caller on which responses depend, default: `workspace`. The cache key is built from them and the URL. */
  readonly caller?: readonly F[];
  /** For responses about a window that ends now: they are cached only within the same second. */
  readonly clock?: 'second';
  /** True for queries whose response depends on something else as well, such as the time; it is then not cached. */
  readonly unless?: (query: Q) => boolean;
}

/** A tool of the Model Context Protocol whose calls are calls of the route (`api/mcp/tools.ts`). */
export interface McpTool {
  /** Such as `next_task`. */
  readonly tool: string;
  /** Default: the summary of the route. */
  readonly summary?: string;
  /** Default: the description of the route, which must then be short enough for hosts. */
  readonly description?: string;
  /** Set when a call removes something. */
  readonly destructive?: true;
  /** Set when repeating a call has no further effect. A tool that only reads is idempotent anyway. */
  readonly idempotent?: true;
  /** The fields of the body that the tool takes; default: all. */
  readonly takes?: readonly string[];
  /** Fields of the body that the tool sets itself; it does not accept them as arguments. */
  readonly sets?: Readonly<Record<string, unknown>>;
  /** URI template such as `task://{id}`, under which the response of the route can be read as a resource. */
  readonly resource?: string;
}

/** What every route declares. */
interface RouteParts<P, Q, B, R extends Responses, A extends Access> {
  readonly method: Method;
  /** OpenAPI form: `/api/agents/{id}`. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly access: A;
  readonly rules: Rules;
  /** Default: `workspace`. */
  readonly scope?: Scope;
  /** Names the shared resource that is refused to callers of a strict workspace. Default: the path. */
  readonly shared?: string;
  /**
   * The agents that a call changes or speaks for, where `rules.agentKeys` is `own` (`api/auth/agent-keys.ts`). Without
   * it, the command decides.
   */
  readonly agents?: (call: Omit<Call<P, Q, B, A>, 'command'>) => Agents | Promise<Agents>;
  /** Names the part of the call that agents may not use; undefined: none. */
  readonly notForAgents?: (call: Pick<Call<P, Q, B, A>, 'body'>) => string | undefined;
  /** Set for a call that trusts the first caller: it needs a loopback name or a host in MC_ALLOWED_HOSTS. */
  readonly knownHost?: true;
  /** Set for a GET that changes something: pages of other origins cannot make it, and HEAD is refused. */
  readonly writes?: true;
  /**
   * The list in the body that `offset` applies to, which ends at the size of a page (`pages.ts`). Default: the only list
   * of objects. `newestLast`: `offset` counts from its end.
   */
  readonly page?: { readonly list: string; readonly newestLast?: true };
  readonly params?: z.ZodType<P>;
  readonly query?: z.ZodType<Q>;
  readonly body?: z.ZodType<B>;
  /** Why a GET cannot read the past (`as-of.ts`); it may depend on the query. */
  readonly noPast?: string | ((query: Q) => string | undefined);
  /** The body may be missing; the schema then parses `{}`. */
  readonly bodyOptional?: boolean;
  /** The tools of this route. */
  readonly mcp?: McpTool | readonly McpTool[];
  /** Set for a POST that carries calls of other routes: its `Idempotency-Key` applies to those calls. */
  readonly carriesCalls?: true;
  /** Left out of the API description: pages and assets, and routes that only operators need. */
  readonly hidden?: boolean;
  /** Responses on success. */
  readonly responses: R;
  /** The route's own errors. Those implied by access, limit and input need not be listed: see `errorsOf`. */
  readonly refuses?: readonly ErrorStatus[];
}

type Handle<P, Q, B, R extends Responses, A extends Access> = (
  call: Call<P, Q, B, A>,
) => Promise<RouteResponseOf<R> | Handled> | RouteResponseOf<R>;

/** A route as it is declared; routes with cached responses are `CachedRoute`. */
type PlainRoute<P, Q, B, R extends Responses, A extends Access> = RouteParts<P, Q, B, R, A> & {
  /** Default: `mutation`, except for GET, which has none. */
  readonly limit?: LimitClass | 'none';
} & (
    | {
        /** Returns the body of the response, which has the lowest declared status. */
        readonly respond: (call: Call<P, Q, B, A>) => Promise<BodyIn<R>> | BodyIn<R>;
        readonly handle?: never;
      }
    /** For other statuses, headers, texts, and responses that the handler writes itself. */
    | { readonly handle: Handle<P, Q, B, R, A>; readonly respond?: never }
  );

export interface Route extends RouteParts<unknown, unknown, unknown, Responses, Access> {
  readonly limit?: LimitClass;
  readonly handle: Handle<unknown, unknown, unknown, Responses, Access>;
  /** Set by `defineCachedRoute`. */
  readonly cache?: Required<Pick<Caching<unknown, keyof Identity>, 'models' | 'scope' | 'caller'>> &
    Pick<Caching<unknown, keyof Identity>, 'clock' | 'unless'> & {
      /** Returns the body. */
      readonly respond: (call: CachedCall<unknown, unknown, keyof Identity>) => Promise<unknown>;
    };
}

/**
 * A GET whose responses are cached until a projection changes on which they depend. `respond` gets only the declared
 * fields of the caller, so a response cannot depend on a field that is not in the cache key.
 */
interface CachedRoute<P, Q, R extends Responses, F extends keyof Identity>
  extends Omit<
    RouteParts<P, Q, undefined, R, Role>,
    'method' | 'agents' | 'notForAgents' | 'writes' | 'body' | 'bodyOptional'
  > {
  readonly method: 'get';
  readonly limit?: LimitClass;
  readonly cache: Caching<Q, F>;
  readonly respond: (call: CachedCall<P, Q, F>) => Promise<BodyIn<R>>;
  /** For the requests that are not cached (`unless`). Default: `respond`. */
  readonly handle?: Handle<P, Q, undefined, R, Role>;
}

/** Declares a route; the types of its call and responses follow from its schemas and access. */
export function defineRoute<
  const R extends Responses,
  const A extends Access,
  P = Record<string, never>,
  Q = Record<string, never>,
  B = undefined,
>({ limit, respond, ...route }: PlainRoute<P, Q, B, R, A>): Route {
  const limited = limit ?? (route.method === 'get' ? 'none' : 'mutation');
  const status = Math.min(...Object.keys(route.responses).map(Number));
  // The cast drops the types of the call: the server checks each call against the schemas before it hands it over.
  return {
    ...route,
    ...(limited !== 'none' && { limit: limited }),
    ...(respond && { handle: async (call: Call<P, Q, B, A>) => ({ status, body: await respond(call) }) }),
  } as unknown as Route;
}

/** Declares a route with a cache. */
export function defineCachedRoute<
  const R extends Responses,
  const F extends keyof Identity = 'workspace',
  P = Record<string, never>,
  Q = Record<string, never>,
>(declared: CachedRoute<P, Q, R, F>): Route {
  const { cache, respond, handle: handleUncached, ...route } = declared;
  const { scope = 'workspace', caller = ['workspace'] } = cache as Caching<Q, keyof Identity>;
  if (scope === 'workspace' && !caller.includes('workspace'))
    throw new Error(`${route.path}: a response that changes with a workspace depends on the caller's workspace`);
  const handle = async (call: Call<P, Q, undefined, Role>) => {
    const { params, query, services } = call;
    if (handleUncached && cache.unless?.(query)) return handleUncached(call);
    const identity = fieldsOf(call.identity, caller) as Pick<Identity, F>;
    return { body: await respond({ params, query, identity, services }) };
  };
  return { ...route, handle, cache: { ...cache, scope, caller, respond } } as Route;
}

/** These fields of a caller, and no others. */
export const fieldsOf = <F extends keyof Identity>(identity: Identity, names: readonly F[]): Pick<Identity, F> =>
  Object.fromEntries(names.map((name) => [name, identity[name]])) as Pick<Identity, F>;

/** The shared resource for which callers of a strict workspace are refused; undefined if they are not. */
export const sharedOf = ({ rules, shared, path }: Pick<Route, 'rules' | 'shared' | 'path'>): string | undefined =>
  rules.strict === 'refused' ? (shared ?? path.replace(/^\/(api\/)?/, '').replace(/\/\{\w+\}/g, '')) : undefined;

/** Whether at least some calls of a route can read the past. */
export const hasPast = ({ rules }: Pick<Route, 'rules'>): boolean => rules.past !== 'none';

/** @throws Error for a route without rules, or with rules that do not agree with the rest of it */
export function checkRules({ method, path, access, rules, scope, shared, agents, noPast }: Route): void {
  const name = `${method.toUpperCase()} ${path}`;
  const known = { agentKeys: ['any', 'tasks', 'own', 'admin', 'never'], strict: ['allowed', 'partly', 'refused'] };
  const values = { ...known, past: ['all', 'partly', 'none'], prompts: ['none', 'refused', 'screened'] };
  for (const [rule, allowed] of Object.entries(values)) {
    const said = (rules as Rules | undefined)?.[rule as keyof Rules];
    if (!allowed.includes(String(said))) throw new Error(`${name}: rules.${rule} must be one of ${allowed.join(', ')}`);
  }
  const agree = (isSo: boolean, what: string) => {
    if (!isSo) throw new Error(`${name}: ${what}`);
  };
  agree(scope !== 'deployment' || rules.strict === 'refused', 'rules.strict of the scope deployment is refused');
  agree(shared === undefined || rules.strict === 'refused', 'shared names what rules.strict refuses');
  agree(!agents || rules.agentKeys === 'own', 'rules.agentKeys of a route with agents is own');
  agree(rules.past === 'none' || (method === 'get' && access !== 'public'), 'only a GET with a credential has a past');
  agree(
    (rules.past === 'partly') === (typeof noPast === 'function'),
    'rules.past is partly where noPast depends on the query',
  );
  agree(rules.past !== 'all' || noPast === undefined, 'rules.past is none where noPast has the reason');
  agree(rules.prompts === 'none' || method !== 'get', 'texts of a GET reach no prompt');
}

/** Every error status of a route: its own, and those implied by its access, limit and input. */
export function errorsOf(route: Route): ReadonlySet<ErrorStatus> {
  const { method, access, rules, notForAgents, limit, writes, knownHost, body, refuses = [] } = route;
  // Invalid input; of a read also its headers, and `as_of` where there is no past.
  const statuses = new Set<ErrorStatus>([400, ...refuses]);
  // Too many wrong API keys from one address are refused wherever a credential is needed.
  if (access !== 'public') statuses.add(401).add(429).add(503);
  // Insufficient role, a strict workspace, an agent's key, a page of another site, or an unknown host.
  const gated = access === 'operator' || access === 'admin' || sharedOf(route) !== undefined || knownHost;
  if (gated || rules.agentKeys !== 'any' || notForAgents || method !== 'get' || writes) statuses.add(403);
  // A different body under the same Idempotency-Key, or the first request is still running.
  if (method === 'post') statuses.add(409);
  // A moment outside of the log, before the past that is retained, or before the past that the caller may read.
  if (hasPast(route)) statuses.add(403).add(409);
  if (body) statuses.add(413).add(415);
  if (limit) statuses.add(429);
  return statuses;
}
