/**
 * Everything that happens to users and their sign-ins. Streams: `user-<id>` for the user, `sign_ins-<id>` for what a
 * known user did at the door, `sign_ins-unknown` for attempts with names that nobody has, `admins-<tenant>` for turns at
 * ending an admin.
 *
 * A password is in no event: events name its hash in the credential store by `credentialId`, a random UUID. Only the
 * id that the newest event names counts, so a change of password takes effect with the log.
 */
import { z } from 'zod';
import { ROLES } from '../../identity.ts';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';

export const PROVIDERS = ['local', 'google'] as const;
export type Provider = (typeof PROVIDERS)[number];

export const userStream = (id: number): string => `user-${id}`;
export const signInStream = (id: number | null): string => `sign_ins-${id ?? 'unknown'}`;

export const adminsStream = (tenant: number): string => `admins-${tenant}`;

/** Stands for a personal value of somebody who was erased. */
const ERASED = '[erased]';

const user = { userId: z.int().positive(), username: z.string() };
const person = (data: { readonly userId: number }) => `user:${data.userId}`;
const target = (data: { readonly userId: number }) => ({ target_type: 'user', target_id: data.userId });
/** Null once the person is erased. */
const personalText = z.string().nullable();

export const userCreated = defineEvent({
  type: 'UserCreated',
  version: 1,
  doc: 'A user exists from now on. `source` says how: by the first-run form, an admin, the first start, an approved access request, a trusted proxy, or the command line.',
  schema: z.object({
    ...user,
    displayName: personalText,
    email: personalText,
    avatarUrl: personalText,
    role: z.enum(ROLES),
    provider: z.enum(PROVIDERS),
    /** The subject of the Google account. */
    providerId: personalText,
    isApproved: z.boolean(),
    tenant: z.int().positive(),
    workspace: z.int().positive(),
    /** Null: no password. */
    credentialId: z.uuid().nullable(),
    source: z.enum(['setup', 'admin', 'seed', 'access_request', 'proxy', 'cli']),
  }),
  personal: { fields: ['displayName', 'email', 'avatarUrl', 'providerId'], person },
  audit: ({ data }) => {
    const { username, role, provider, email, source } = data;
    // The approval of the access request is the audited act.
    if (source === 'access_request') return undefined;
    if (source === 'setup') return { action: 'setup_admin_created', ...target(data), detail: { username } };
    return {
      action: 'user_create',
      ...target(data),
      detail: { username, role, provider, email, ...(source !== 'admin' && { source }) },
    };
  },
});

/** Fields that an update can set; absent means unchanged. */
const updatable = {
  displayName: personalText.optional(),
  email: personalText.optional(),
  avatarUrl: personalText.optional(),
  role: z.enum(ROLES).optional(),
  isApproved: z.boolean().optional(),
  provider: z.enum(PROVIDERS).optional(),
  providerId: personalText.optional(),
};

export const userUpdated = defineEvent({
  type: 'UserUpdated',
  version: 1,
  doc: 'Fields of a user were set: by an admin, by the user, by a Google sign-in that brought newer ones, or by an approved access request.',
  schema: z.object({
    ...user,
    ...updatable,
    /** The same append carries a UserPasswordChanged. */
    passwordChanged: z.boolean(),
    by: z.enum(['admin', 'self', 'google', 'access_request', 'cli']),
  }),
  personal: { fields: ['displayName', 'email', 'avatarUrl', 'providerId'], person },
  audit: ({ data }) => {
    if (data.by === 'self') {
      return { action: 'profile_update', ...target(data), detail: { display_name: data.displayName ?? null } };
    }
    if (data.by !== 'admin' && data.by !== 'cli') return undefined;
    const { displayName, role, isApproved, passwordChanged } = data;
    return {
      action: 'user_update',
      ...target(data),
      detail: {
        ...(displayName !== undefined && { display_name: displayName }),
        ...(role !== undefined && { role }),
        password_changed: passwordChanged,
        ...(isApproved !== undefined && { is_approved: isApproved ? 1 : 0 }),
      },
    };
  },
});

export const userPasswordChanged = defineEvent({
  type: 'UserPasswordChanged',
  version: 1,
  doc: 'A user has another password. Every session of the user ends with it. Set by an admin, the UserUpdated of the same append carries the audit entry.',
  schema: z.object({ ...user, credentialId: z.uuid(), by: z.enum(['self', 'admin', 'cli']) }),
  audit: ({ data }) => (data.by === 'self' ? { action: 'password_change', ...target(data) } : undefined),
  frames: ({ data, meta }) =>
    data.by === 'self'
      ? [
          {
            type: 'audit.security',
            role: 'admin',
            data: {
              action: 'password_change',
              actor: meta.actor.name,
              ...target(data),
              timestamp: seconds(meta.at),
            },
          },
        ]
      : [],
});

export const userMoved = defineEvent({
  type: 'UserMoved',
  version: 1,
  doc: 'A user belongs to another workspace, because the old one was removed.',
  schema: z.object({ ...user, tenant: z.int().positive(), workspace: z.int().positive() }),
});

export const userDeleted = defineEvent({
  type: 'UserDeleted',
  version: 1,
  doc: 'A user is gone: sessions and password no longer open anything, the name is free. What the user did stays in the history.',
  schema: z.object(user),
  audit: ({ data }) => ({ action: 'user_delete', ...target(data), detail: { username: data.username } }),
});

export const adminRemovalBegun = defineEvent({
  type: 'AdminRemovalBegun',
  version: 1,
  doc: 'A tenant is about to lose an enabled admin, and another one was seen who stays. Written before the user is changed; the protocol is in `commands/auth/last-admin.ts`.',
  schema: z.object({
    tenant: z.int().positive(),
    userId: z.int().positive(),
    /** How many turns at this user had ended before this one. */
    turn: z.int().nonnegative(),
  }),
});

export const adminRemovalVoided = defineEvent({
  type: 'AdminRemovalVoided',
  version: 1,
  doc: 'Written to the stream of an admin whose announced removal did not come, before somebody else takes a turn: a late removal has to take another one.',
  schema: z.object({ userId: z.int().positive() }),
});

export const googleDisconnected = defineEvent({
  type: 'GoogleDisconnected',
  version: 1,
  doc: 'A user signs in with a password again instead of Google. Every session of the user ends with it.',
  schema: z.object(user),
  audit: ({ data }) => ({ action: 'google_disconnect', ...target(data) }),
});

export const userSignedIn = defineEvent({
  type: 'UserSignedIn',
  version: 1,
  doc: 'A session of a user began.',
  schema: z.object({ ...user, method: z.enum(['password', 'google']) }),
  audit: ({ data }) => ({ action: data.method === 'google' ? 'login_google' : 'login', ...target(data) }),
});

export const userSignedOut = defineEvent({
  type: 'UserSignedOut',
  version: 1,
  doc: 'A user ended a session.',
  schema: z.object(user),
  audit: ({ data }) => ({ action: 'logout', ...target(data) }),
});

export const SIGN_IN_FAILURES = ['user_not_found', 'wrong_provider', 'not_approved', 'invalid_password'] as const;
export type SignInFailure = (typeof SIGN_IN_FAILURES)[number];

export const signInFailed = defineEvent({
  type: 'SignInFailed',
  version: 1,
  doc: 'A sign-in with a password was refused. The caller is told the same whatever the reason is.',
  schema: z.object({
    /** As it was typed; people type e-mail addresses and passwords here. */
    username: personalText,
    /** The user who has this name; null when nobody does. */
    userId: z.int().positive().nullable(),
    reason: z.enum(SIGN_IN_FAILURES),
    /** `2026-03`: names the key that seals attempts with unknown names. */
    month: z.string(),
  }),
  personal: {
    fields: ['username'],
    person: (data) => (data.userId === null ? `anonymous:${data.month}` : `user:${data.userId}`),
  },
  audit: ({ data }) => ({
    action: 'login_failed',
    actor: data.username ?? ERASED,
    actor_id: data.userId,
    ...(data.userId !== null && { target_type: 'user', target_id: data.userId }),
    detail: { reason: data.reason },
  }),
  frames: ({ data, meta }) => [
    {
      type: 'audit.security',
      role: 'admin',
      data: {
        action: 'login_failed',
        actor: data.username ?? ERASED,
        target_type: data.userId === null ? null : 'user',
        target_id: data.userId,
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

export const userEvents = [
  userCreated,
  userUpdated,
  userPasswordChanged,
  userMoved,
  userDeleted,
  adminRemovalBegun,
  adminRemovalVoided,
  googleDisconnected,
  userSignedIn,
  userSignedOut,
  signInFailed,
];
