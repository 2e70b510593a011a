/** Whether a caller may make a request: credential, role, scope, isolation, access for agents, and limits. */
import { forbidden, OtherTenant, unauthenticated } from '../../shared/errors.ts';
import { DEFAULT_TENANT } from '../../shared/events/metadata.ts';
import { type Identity, type Role, reaches } from '../../shared/identity.ts';
import { routeFault } from '../auth/agent-keys.ts';
import { createIdentify } from '../auth/identify.ts';
import type { Services } from '../services.ts';
import type { RequestContext } from './context.ts';
import { createLimiter, LIMITS, type LimitClass } from './limits.ts';
import { type Route, sharedOf } from './route.ts';

export interface Authorization {
  /**
   * Checks credential, role, scope, isolation, access for agents, and limit, in this order; once per request. Null: an
   * anonymous caller of a public route.
   *
   * @throws AppError 401, 403, 429
   */
  authorize(route: Route, context: RequestContext): Promise<Identity | null>;
  /** Whether the request has a valid credential. Never throws: that is left to the check of the route. */
  isKnown(context: RequestContext): Promise<boolean>;
  /** For paths and methods without a route. @throws AppError 401 without a valid credential */
  requireCaller(context: RequestContext): Promise<void>;
  /** Whether the caller's workspace is strictly isolated. */
  isStrict(context: RequestContext, identity: Identity): Promise<boolean>;
  /** @throws AppError 403 to a caller of a strict workspace */
  checkShared(context: RequestContext, identity: Identity, path: string, resource: string): Promise<void>;
  /** Does nothing without a `fault`. @throws AppError 403 */
  refuseAgent(context: RequestContext, route: Route, fault: string | undefined): void;
  /** @throws AppError 429 */
  checkLimit(name: LimitClass, context: RequestContext): Promise<void>;
}

export function createAuthorization(services: Services): Authorization {
  const { isolation, securityEvents } = services;
  const identify = createIdentify(services);
  const checkLimit = createLimiter(services, (name, context) => securityEvents.rateLimitHit(context, name));

  const isStrict = (context: RequestContext, { workspace }: Identity) =>
    isolation.isStrict(workspace, context.startedAt);

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

  function refuseAgent(context: RequestContext, { path }: Route, fault: string | undefined): void {
    if (fault === undefined) return;
    securityEvents.agentAccessDenied(context, `${context.req.method} ${path}`);
    throw forbidden(fault);
  }

  async function callerOf(route: Route, context: RequestContext): Promise<Identity | null> {
    try {
      return await identify(context);
    } catch (error) {
      // Probes and sign-in must work even if the request carries a credential that cannot be looked up.
      if (route.access === 'public') return null;
      throw error;
    }
  }

  function requireRole({ access, path, scope }: Route, context: RequestContext, identity: Identity | null): void {
    if (access === 'public') return;
    if (!identity)
      throw unauthenticated(
        'Authentication required: send a session cookie from POST /api/auth/login or an API key in the x-api-key header.',
      );
    const needed: Role = access === 'any' ? 'viewer' : access;
    if (!reaches(identity.role, needed)) {
      securityEvents.accessDenied(context, `${context.req.method} ${path}`, needed);
      throw forbidden(`This call requires the role ${needed}; yours is ${identity.role}.`);
    }
    if (scope === 'deployment' && identity.tenant !== DEFAULT_TENANT)
      throw new OtherTenant('This call concerns the whole deployment: only callers of the default tenant may make it.');
  }

  return {
    isStrict,
    checkShared,
    refuseAgent,
    checkLimit,
    async authorize(route, context) {
      if (context.authorized === route) return context.identity ?? null;
      context.route = route.path;
      const isFirst = route.limit !== undefined && 'first' in LIMITS[route.limit];
      if (route.limit && isFirst) await checkLimit(route.limit, context);
      if (context.identity === undefined) context.identity = await callerOf(route, context);
      const { identity } = context;
      requireRole(route, context, identity);
      const shared = sharedOf(route);
      if (shared !== undefined && identity) await checkShared(context, identity, route.path, shared);
      if (identity) refuseAgent(context, route, routeFault(route, identity));
      if (route.limit && !isFirst) await checkLimit(route.limit, context);
      context.authorized = route;
      return identity;
    },
    async isKnown(context) {
      if (context.identity !== undefined) return context.identity !== null;
      const identity = await identify(context).catch(() => undefined);
      if (identity !== undefined) context.identity = identity;
      return Boolean(identity);
    },
    async requireCaller(context) {
      if (context.identity === undefined) context.identity = await identify(context);
      if (!context.identity) throw unauthenticated('Authentication required: send a session cookie or an API key.');
    },
  };
}
