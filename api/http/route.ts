/**
 * A route is data: what it takes, who may call it, what it answers, and the function in between. Express, the
 * validation and the OpenAPI description are all made from it.
 */
import type { z } from 'zod';
import type { CommandContext } from '../../commands/handler.ts';
import type { Identity, Role } from '../../shared/identity.ts';
import type { Services } from '../services.ts';
import type { Exchange } from './exchange.ts';
import type { LimitClass } from './limits.ts';

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

export interface Answer {
  readonly status?: number;
  /** JSON, unless `text` is given. Undefined only for routes that write the response themselves. */
  readonly body?: unknown;
  readonly text?: { readonly type: string; readonly content: string | Buffer };
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

/** The handler has written to the response itself (streams, files). */
export const HANDLED: Handled = { handled: true };
interface Handled {
  readonly handled: true;
}

export interface Call<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** Who calls. On public routes the anonymous caller has none: use `exchange.identity`. */
  readonly identity: Identity;
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

export interface Route<P = unknown, Q = unknown, B = unknown> {
  readonly method: Method;
  /** OpenAPI form: `/api/agents/{id}`. */
  readonly path: string;
  readonly tag: (typeof TAGS)[number];
  readonly summary: string;
  readonly description?: string;
  readonly access: Access;
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
  readonly responses: Readonly<Record<number, ResponseSpec>>;
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
  readonly handle: (call: Call<P, Q, B>) => Promise<Answer | Handled> | Answer;
}

/** Declares a route; the types of the call follow from its schemas. */
export function defineRoute<P = Record<string, never>, Q = Record<string, never>, B = undefined>(
  route: Route<P, Q, B>,
): Route {
  return route as unknown as Route;
}
