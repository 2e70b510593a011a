/**
 * Ways in and refusals: access requests, the deployment's own key, denied and limited calls. Streams:
 * `access_request-<id>`, `global_key`, and `incidents-<month>` for what is only recorded.
 */
import { z } from 'zod';
import { ROLES } from '../../identity.ts';
import { seconds } from '../../time.ts';
import { type DomainEvent, defineEvent, type FrameDraft } from '../define.ts';

export const accessRequestStream = (id: number): string => `access_request-${id}`;
/** The one stream of the deployment's key. */
export const GLOBAL_KEY_STREAM = 'global_key';

const request = { requestId: z.int().positive() };
const person = (data: { readonly requestId: number }) => `access_request:${data.requestId}`;
/** Null once the person is erased. */
const personalText = z.string().nullable();

export const accessRequested = defineEvent({
  type: 'AccessRequested',
  version: 1,
  doc: 'Somebody without an approved user signed in with Google. Each attempt is one event and makes the request pending again.',
  schema: z.object({
    ...request,
    provider: z.enum(['google']),
    /** Lower case. */
    email: personalText,
    displayName: personalText,
    avatarUrl: personalText,
    providerId: personalText,
  }),
  personal: { fields: ['email', 'displayName', 'avatarUrl', 'providerId'], person },
  audit: ({ data }) => ({
    action: 'google_login_pending_approval',
    actor: data.email ?? '[erased]',
    actor_id: null,
    target_type: 'access_request',
    target_id: data.requestId,
    detail: { email: data.email, sub: data.providerId },
  }),
});

export const accessRequestApproved = defineEvent({
  type: 'AccessRequestApproved',
  version: 1,
  doc: 'An admin let somebody in. The user is created, or brought up to date, right after this event.',
  schema: z.object({
    ...request,
    email: personalText,
    role: z.enum(ROLES),
    /** The user who exists already, or the number that the new one gets. */
    userId: z.int().positive(),
    note: z.string().nullable(),
  }),
  personal: { fields: ['email'], person },
  audit: ({ data }) => ({
    action: 'access_request_approved',
    target_type: 'access_request',
    target_id: data.requestId,
    detail: {
      request_id: data.requestId,
      email: data.email,
      role: data.role,
      user_id: data.userId,
      note: data.note,
    },
  }),
});

export const accessRequestRejected = defineEvent({
  type: 'AccessRequestRejected',
  version: 1,
  doc: 'An admin did not let somebody in. A user that exists already stays as it is.',
  schema: z.object({ ...request, email: personalText, note: z.string().nullable() }),
  personal: { fields: ['email'], person },
  audit: ({ data }) => ({
    action: 'access_request_rejected',
    target_type: 'access_request',
    target_id: data.requestId,
    detail: { request_id: data.requestId, email: data.email, note: data.note },
  }),
});

export const KEY_SOURCES = ['database', 'environment', 'none'] as const;
export type KeySource = (typeof KEY_SOURCES)[number];

export const globalKeyConfigured = defineEvent({
  type: 'GlobalKeyConfigured',
  version: 1,
  doc: 'The deployment has a key from now on: from its environment, or generated because there was none. The key named here is the only one in force.',
  schema: z.object({
    keyId: z.int().positive(),
    source: z.enum(['environment', 'database']),
    /** First and last characters, for recognition. */
    masked: z.string(),
  }),
});

export const globalKeyRotated = defineEvent({
  type: 'GlobalKeyRotated',
  version: 1,
  doc: 'An admin replaced the key of the deployment. It wins over the environment for good; the old one stops at once.',
  schema: z.object({
    keyId: z.int().positive(),
    masked: z.string(),
    oldSource: z.enum(KEY_SOURCES),
    oldMasked: z.string().nullable(),
  }),
  audit: ({ data }) => ({
    action: 'api_key_rotated',
    detail: {
      old_source: data.oldSource,
      ...(data.oldMasked !== null && { old_key_masked: data.oldMasked }),
      new_key_masked: data.masked,
    },
  }),
});

/** `count`: how often it happened since the last such event of the same caller; see `api/auth/incidents.ts`. */
const counted = { count: z.int().positive() };

function securityFrame(
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

export const accessDenied = defineEvent({
  type: 'AccessDenied',
  version: 1,
  doc: 'A known caller asked for something that needs a higher role.',
  schema: z.object({ route: z.string(), needed: z.enum(ROLES), ...counted }),
  audit: ({ data }) => ({
    action: 'access_denied',
    detail: { route: data.route, needed: data.needed, count: data.count },
  }),
});

export const tenantAccessDenied = defineEvent({
  type: 'TenantAccessDenied',
  version: 1,
  doc: 'A known caller asked for something beyond its tenant.',
  schema: z.object({ route: z.string(), ...counted }),
  audit: ({ data, meta }) => ({
    action: 'tenant_access_denied',
    target_type: 'workspace',
    target_id: meta.workspace,
    detail: { tenant_id: meta.tenant, route: data.route, count: data.count },
  }),
});

export const rateLimitHit = defineEvent({
  type: 'RateLimitHit',
  version: 1,
  doc: 'A caller was over a rate limit.',
  schema: z.object({ route: z.string(), limit: z.string(), ...counted }),
  frames: (event) => securityFrame(event, 'rate_limit_hit', 'warning', event.data.route, event.data),
});

export const apiKeyRefused = defineEvent({
  type: 'ApiKeyRefused',
  version: 1,
  doc: 'Somebody sent an API key that opens nothing. Recorded once per address and minute; the key itself is nowhere.',
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
  version: 1,
  doc: 'The key of the deployment was used. Recorded once per address and hour.',
  schema: z.object({ route: z.string(), ...counted }),
  frames: (event) => securityFrame(event, 'global_api_key_used', 'info', event.data.route, event.data),
});

export const proxyAuthMisconfigured = defineEvent({
  type: 'ProxyAuthMisconfigured',
  version: 1,
  doc: 'A request named a user in the proxy header, but no address is trusted to do so: the header is ignored.',
  schema: z.object({ header: z.string(), ...counted }),
  frames: (event) => securityFrame(event, 'proxy_auth_misconfigured', 'critical', 'proxy_auth', event.data),
});

export const accessEvents = [
  accessRequested,
  accessRequestApproved,
  accessRequestRejected,
  globalKeyConfigured,
  globalKeyRotated,
  accessDenied,
  tenantAccessDenied,
  rateLimitHit,
  apiKeyRefused,
  globalKeyUsed,
  proxyAuthMisconfigured,
];
