/**
 * A route is data: what it takes, who may call it, what it answers, and the function in between. Express, the
 * validation and the OpenAPI description are all made from it.
 */
import type { z } from 'zod';
import type { CommandContext } from '../../commands/handler.ts';
import type { ERRORS } from '../../shared/contract/common.ts';
import type { Identity, Role } from '../../shared/identity.ts';
import type { Services } from '../services.ts';
import type { Exchange } from './exchange.ts';
import type { LimitClass } from './limits.ts';

/** Statuses of error answers. */
export type ErrorStatus = keyof typeof ERRORS;

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** `public`: no credential; `any`: any identity, as `viewer`, but its handler may ask for a session. */
export type Access = 'public' | 'any' | Role;

/**
 * How far a call reaches. `workspace`: the caller's own, which every query and command is given. `deployment`: beyond
 * any tenant; such a call is for callers of the default tenant only, whatever their role elsewhere.
 */
export type Scope = 'workspace' | 'deployment';

export const TAGS = [
  'Auth',
  'Agents',
  'Tasks',
  'Chat',
  'Tokens',
  'Sessions',
  'Webhooks',
  'Alerts',
  'Workflows',
  'Pipelines',
  'Monitoring',
  'Admin',
  'Super Admin',
  'Connections',
  'Projects',
  'Mentions',
  'Quality',
  'Releases',
  'Docs',
] as const;

/** What a handler gives back. `Body`: the type that its route declares for this status. */
export interface Answer<Body = unknown> {
  readonly status?: number;
  /** JSON, unless `text` is given. */
  readonly body?: Body;
  readonly text?: { readonly type: string; readonly content: string | Buffer };
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

/** The handler has written to the response itself (streams, files). */
export const HANDLED: Handled = { handled: true };
interface Handled {
  readonly handled: true;
}

export interface Call<P, Q, B, A extends Access = Access> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** Who calls; null for the anonymous caller of a public route. */
  readonly identity: 'public' extends A ? Identity | null : Identity;
  readonly exchange: Exchange;
  readonly services: Services;
  /** Hand it to `commands.execute`: it carries the origin of the events and the idempotency of the request. */
  readonly command: CommandContext;
}

export interface ResponseSpec {
  readonly description: string;
  readonly schema?: z.ZodType;
  /** Media type; default application/json. */
  readonly type?: string;
}

export type Responses = Readonly<Record<number, ResponseSpec>>;

/** What a schema gives, literals as their kinds: what an async function returns has lost them. */
type Shown<T> = T extends string
  ? string
  : T extends number
    ? number
    : T extends boolean
      ? boolean
      : T extends (infer E)[]
        ? readonly Shown<E>[]
        : T extends object
          ? { readonly [K in keyof T]: Shown<T[K]> }
          : T;
type BodyOf<S extends ResponseSpec> = S extends { readonly schema: infer Z extends z.ZodType }
  ? Shown<z.output<Z>>
  : unknown;
/** One of the declared answers. The status may be left out where 200 is among them. */
type AnswerOf<R extends Responses> = Answer<BodyOf<R[keyof R & number]>> &
  (200 extends keyof R ? unknown : { readonly status: number });

export interface Route<
  P = unknown,
  Q = unknown,
  B = unknown,
  R extends Responses = Responses,
  A extends Access = Access,
> {
  readonly method: Method;
  /** OpenAPI form: `/api/agents/{id}`. */
  readonly path: string;
  readonly tag: (typeof TAGS)[number];
  readonly summary: string;
  readonly description?: string;
  readonly access: A;
  /** Default: `workspace`. */
  readonly scope?: Scope;
  readonly limit?: LimitClass;
  readonly params?: z.ZodType<P>;
  readonly query?: z.ZodType<Q>;
  readonly body?: z.ZodType<B>;
  /** The body may be missing; the schema then gets `{}`. */
  readonly bodyOptional?: boolean;
  /** Left out of the description: pages and their assets, and what only those need who run the service. */
  readonly hidden?: boolean;
  /** What it answers when it does what it is asked. */
  readonly responses: R;
  /** Errors of its own. Those that access, limit and input bring need not be named: see `errorsOf`. */
  readonly refuses?: readonly ErrorStatus[];
  /**
   * The answer depends on nothing but the URL, the caller's workspace, what `per` says of the caller, and these
   * projections (names), and may be given again while they stand still.
   */
  readonly cache?: {
    readonly models: readonly string[];
    readonly scope: 'workspace' | 'all';
    /** For answers that are not the same for all callers of a workspace: the same text for those who get the same. */
    readonly per?: (identity: Identity) => string;
    /** Queries whose answer depends on more than that, such as the time. */
    readonly unless?: (query: Q) => boolean;
  };
  readonly handle: (call: Call<P, Q, B, A>) => Promise<AnswerOf<R> | Handled> | AnswerOf<R>;
}

/** Declares a route; the types of the call and of its answers follow from its schemas and its access. */
export function defineRoute<
  const R extends Responses,
  const A extends Access,
  P = Record<string, never>,
  Q = Record<string, never>,
  B = undefined,
>(route: Route<P, Q, B, R, A>): Route {
  return route as unknown as Route;
}

/** Every error that a route may answer with: its own, and those that its access, limit and input bring. */
export function errorsOf(route: Route): ReadonlySet<ErrorStatus> {
  const { method, access, scope, limit, params, query, body, refuses = [] } = route;
  const statuses = new Set<ErrorStatus>(refuses);
  if (params || query || body || method === 'post') statuses.add(400);
  if (access !== 'public') statuses.add(401).add(503);
  // The role, or an Origin header that names another host.
  if (access === 'operator' || access === 'admin' || scope === 'deployment' || method !== 'get') statuses.add(403);
  // Another body under the same Idempotency-Key, or a first request that still runs.
  if (method === 'post') statuses.add(409);
  if (body) statuses.add(413).add(415);
  if (limit) statuses.add(429);
  return statuses;
}
