/**
 * Sign-ins and sign-outs. Streams: `sign_ins-<user id>`, and `sign_ins-unknown` for attempts with unknown names.
 */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';

export const signInStream = (id: number | null): string => `sign_ins-${id ?? 'unknown'}`;

/** Replaces a personal value of an erased person. */
const ERASED = '[erased]';

const user = { user_id: z.int().positive(), username: z.string() };

export const userSignedIn = defineEvent({
  type: 'UserSignedIn',
  doc: 'A user signed in, and a session began.',
  schema: z.object({ ...user, method: z.enum(['password', 'google', 'oidc']) }),
  audit: ({ data }) => ({
    action: data.method === 'password' ? 'login' : `login_${data.method}`,
    target: ['user', data.user_id],
  }),
});

export const userSignedOut = defineEvent({
  type: 'UserSignedOut',
  doc: 'A user signed out, and the session ended.',
  schema: z.object(user),
  audit: ({ data }) => ({ action: 'logout', target: ['user', data.user_id] }),
});

export const SIGN_IN_FAILURES = ['user_not_found', 'wrong_provider', 'not_approved', 'invalid_password'] as const;
export type SignInFailure = (typeof SIGN_IN_FAILURES)[number];

export const signInFailed = defineEvent({
  type: 'SignInFailed',
  doc: 'A sign-in with a password was refused. The response is the same for every reason.',
  schema: z.object({
    /** As typed; people also type e-mail addresses and passwords here. Null once the person is erased. */
    username: z.string().nullable(),
    /** The user with this name; null when there is none. */
    user_id: z.int().positive().nullable(),
    reason: z.enum(SIGN_IN_FAILURES),
    /** `2026-03`: names the key that seals attempts with unknown names. */
    month: z.string(),
  }),
  personal: {
    fields: ['username'],
    person: (data) => (data.user_id === null ? `anonymous:${data.month}` : `user:${data.user_id}`),
  },
  audit: ({ data }) => ({
    action: 'login_failed',
    actor: data.username ?? ERASED,
    actor_id: data.user_id,
    ...(data.user_id !== null && { target: ['user', data.user_id] as const }),
    detail: { reason: data.reason },
  }),
  frames: ({ data, meta }) => [
    {
      type: 'audit.security',
      role: 'admin',
      // People type passwords here.
      unsent: ['actor'],
      data: {
        action: 'login_failed',
        actor: data.username ?? ERASED,
        target_type: data.user_id === null ? null : 'user',
        target_id: data.user_id,
        timestamp: seconds(meta.at),
      },
    },
    {
      type: 'security.event',
      role: 'admin',
      data: {
        id: meta.number,
        event_type: 'auth_failure',
        severity: 'warning',
        source: 'login',
        agent_name: null,
        detail: JSON.stringify({ username: data.username, reason: data.reason }),
        ip_address: meta.ip,
        tenant_id: meta.tenant,
        timestamp: seconds(meta.at),
      },
    },
  ],
});
