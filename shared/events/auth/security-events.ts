/**
 * Security events: refusals and notable uses that are recorded but change nothing. Streams: `security_events-<month>`, so
 * that no stream grows without bound.
 */
import { z } from 'zod';
import { ROLES } from '../../identity.ts';
import { seconds } from '../../time.ts';
import { type DomainEvent, defineEvent, type FrameDraft } from '../define.ts';

/** @param at Unix milliseconds */
export const securityEventsStream = (at: number): string => `security_events-${new Date(at).toISOString().slice(0, 7)}`;

/** `count`: number of security events since the last such event of the same caller; see `api/auth/security-events.ts`. */
const counted = { count: z.int().positive() };

/** The frame of a security event. */
export function securityFrame(
  event: Pick<DomainEvent, 'meta'>,
  type: string,
  severity: 'info' | 'warning' | 'critical',
  source: string,
  detail: Readonly<Record<string, unknown>>,
): readonly FrameDraft[] {
  const { meta } = event;
  return [
    {
      type: 'security.event',
      role: 'admin',
      data: {
        id: meta.number,
        event_type: type,
        severity,
        source,
        agent_name: meta.actor.type === 'agent' ? meta.actor.name.replace(/^agent:/, '') : null,
        detail: JSON.stringify(detail),
        ip_address: meta.ip,
        tenant_id: meta.tenant,
        timestamp: seconds(meta.at),
      },
    },
  ];
}

/** Texts that were withheld because they try to take over an agent. The texts themselves are not repeated. */
export const breaches = z.array(
  z.object({
    /** `description` */
    what: z.string(),
    /** Author of the text: `user ann`. */
    by: z.string(),
    /** Names of the rules that it breaks. */
    rules: z.array(z.string()),
  }),
);

export const accessDenied = defineEvent({
  type: 'AccessDenied',
  doc: 'An authenticated caller sent a request that needs a higher role.',
  schema: z.object({ route: z.string(), needed: z.enum(ROLES), ...counted }),
  audit: ({ data }) => ({
    action: 'access_denied',
    detail: { route: data.route, needed: data.needed, count: data.count },
  }),
});

export const agentAccessDenied = defineEvent({
  type: 'AgentAccessDenied',
  doc: 'A caller with an agent’s key sent a request that agents may not make, or that concerns another agent.',
  schema: z.object({ route: z.string(), ...counted }),
  audit: ({ data, meta }) => ({
    action: 'agent_access_denied',
    target: ['agent', meta.actor.id],
    detail: { route: data.route, count: data.count },
  }),
});

export const tenantAccessDenied = defineEvent({
  type: 'TenantAccessDenied',
  doc: 'An authenticated caller sent a request that concerns another tenant.',
  schema: z.object({ route: z.string(), ...counted }),
  audit: ({ data, meta }) => ({
    action: 'tenant_access_denied',
    target: ['workspace', meta.workspace],
    detail: { tenant_id: meta.tenant, route: data.route, count: data.count },
  }),
});

export const workspaceIsolationDenied = defineEvent({
  type: 'WorkspaceIsolationDenied',
  doc: 'A caller of a workspace with strict isolation requested a resource that workspaces share.',
  schema: z.object({ route: z.string(), resource: z.string(), ...counted }),
  audit: ({ data: { route, resource, count }, meta }) => ({
    action: 'workspace_isolation_denied',
    target: ['workspace', meta.workspace],
    detail: { resource, route, tenant_id: meta.tenant, reason: 'strict_isolation', count },
  }),
});

export const rateLimitHit = defineEvent({
  type: 'RateLimitHit',
  doc: 'A caller exceeded a rate limit.',
  schema: z.object({ route: z.string(), limit: z.string(), ...counted }),
  frames: (event) => securityFrame(event, 'rate_limit_hit', 'warning', event.data.route, event.data),
});

export const apiKeyRefused = defineEvent({
  type: 'ApiKeyRefused',
  doc: 'A request had an invalid API key. Recorded once per address and minute; the key itself is not stored.',
  schema: z.object({ route: z.string(), ...counted }),
  audit: ({ data }) => ({
    action: 'login_failed',
    actor_id: null,
    detail: { reason: 'invalid_api_key', route: data.route, count: data.count },
  }),
  frames: (event) => [
    {
      type: 'audit.security',
      role: 'admin',
      data: {
        action: 'login_failed',
        actor: event.meta.actor.name,
        target_type: null,
        target_id: null,
        timestamp: seconds(event.meta.at),
      },
    },
    ...securityFrame(event, 'auth_failure', 'warning', 'api_key', event.data),
  ],
});

export const globalKeyUsed = defineEvent({
  type: 'GlobalKeyUsed',
  doc: 'The API key of the deployment was used. Recorded once per address and hour.',
  schema: z.object({ route: z.string(), ...counted }),
  frames: (event) => securityFrame(event, 'global_api_key_used', 'info', event.data.route, event.data),
});

export const proxyAuthMisconfigured = defineEvent({
  type: 'ProxyAuthMisconfigured',
  doc: 'A request named a user in the proxy header. No address is trusted to do so, so the header was ignored.',
  schema: z.object({ header: z.string(), ...counted }),
  frames: (event) => securityFrame(event, 'proxy_auth_misconfigured', 'critical', 'proxy_auth', event.data),
});

export const injectionRefused = defineEvent({
  type: 'InjectionRefused',
  doc: 'A caller sent a text that tries to take over an agent. It was refused, and the text is not stored.',
  schema: z.object({ route: z.string(), rules: z.array(z.string()), ...counted }),
  frames: (event) => securityFrame(event, 'injection_attempt', 'warning', event.data.route, event.data),
});

export const textWithheld = defineEvent({
  type: 'TextWithheld',
  doc: 'A text that tries to take over an agent was withheld from a result for that agent. The text itself is not repeated.',
  schema: z.object({
    /** The tool or resource. */
    tool: z.string(),
    texts: breaches,
    ...counted,
  }),
  frames: (event) => securityFrame(event, 'injection_attempt', 'warning', 'mcp', event.data),
});
