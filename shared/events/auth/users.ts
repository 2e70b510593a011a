/**
 * Changes of users. Streams: `user-<id>`.
 *
 * No event contains a password: events refer to its hash in the credential store by `credential_id`, a random UUID.
 * Only the id in the newest event is valid, so a change of password takes effect with its event.
 */
import { z } from 'zod';
import { ROLES } from '../../identity.ts';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';

/** How users sign in. `local`: a password; `proxy`: a trusted proxy named the user first. */
export const PROVIDERS = ['local', 'google', 'oidc', 'proxy'] as const;
export type Provider = (typeof PROVIDERS)[number];

/** Whether a password signs these users in. Those that a proxy named have one once an admin sets it. */
export const mayHavePassword = (provider: Provider): boolean => provider === 'local' || provider === 'proxy';

export const userStream = (id: number): string => `user-${id}`;

const user = { user_id: z.int().positive(), username: z.string() };
const person = (data: { readonly user_id: number }) => `user:${data.user_id}`;
/** Null once the person is erased. */
const personalText = z.string().nullable();

export const userCreated = defineEvent({
  type: 'UserCreated',
  doc: 'A user was created. `source`: the first-run form, an admin, the first start, an approved access request, a trusted proxy, an OpenID Connect provider, or the command line.',
  schema: z.object({
    ...user,
    display_name: personalText,
    email: personalText,
    avatar_url: personalText,
    role: z.enum(ROLES),
    provider: z.enum(PROVIDERS),
    /** The subject of the Google account; for an OpenID Connect provider, issuer and subject joined by `#`. */
    provider_id: personalText,
    is_approved: z.boolean(),
    tenant: z.int().positive(),
    workspace: z.int().positive(),
    /** Null: no password. */
    credential_id: z.uuid().nullable(),
    source: z.enum(['setup', 'admin', 'seed', 'access_request', 'proxy', 'cli', 'oidc']),
  }),
  personal: { fields: ['display_name', 'email', 'avatar_url', 'provider_id'], person },
  audit: ({ data }) => {
    const { username, role, provider, email, source } = data;
    // The approval of the access request is audited instead.
    if (source === 'access_request') return undefined;
    if (source === 'setup')
      return { action: 'setup_admin_created', target: ['user', data.user_id], detail: { username } };
    return {
      action: 'user_create',
      target: ['user', data.user_id],
      detail: { username, role, provider, email, ...(source !== 'admin' && { source }) },
    };
  },
});

/** Fields that an update can set; absent means unchanged. */
const updatable = {
  display_name: personalText.optional(),
  email: personalText.optional(),
  avatar_url: personalText.optional(),
  role: z.enum(ROLES).optional(),
  is_approved: z.boolean().optional(),
  provider: z.enum(PROVIDERS).optional(),
  provider_id: personalText.optional(),
};

export const userUpdated = defineEvent({
  type: 'UserUpdated',
  doc: 'Fields of a user were set: by an admin, by the user, by a sign-in with Google or an OpenID Connect provider that has newer values, or by an approved access request.',
  schema: z.object({
    ...user,
    ...updatable,
    /** Whether the same append contains a UserPasswordChanged. */
    password_changed: z.boolean(),
    by: z.enum(['admin', 'self', 'google', 'access_request', 'cli', 'oidc']),
  }),
  personal: { fields: ['display_name', 'email', 'avatar_url', 'provider_id'], person },
  audit: ({ data }) => {
    if (data.by === 'self') {
      return {
        action: 'profile_update',
        target: ['user', data.user_id],
        detail: { display_name: data.display_name ?? null },
      };
    }
    // Changes by a provider are audited if they change the user's permissions.
    const isAudited = data.by === 'admin' || data.by === 'cli' || (data.by === 'oidc' && data.role !== undefined);
    if (!isAudited) return undefined;
    const { display_name, role, is_approved, password_changed } = data;
    return {
      action: 'user_update',
      target: ['user', data.user_id],
      detail: {
        ...(display_name !== undefined && { display_name }),
        ...(role !== undefined && { role }),
        password_changed,
        ...(is_approved !== undefined && { is_approved: is_approved ? 1 : 0 }),
      },
    };
  },
});

export const userPasswordChanged = defineEvent({
  type: 'UserPasswordChanged',
  doc: 'The password of a user was changed, which ends all sessions of the user. If an admin set it, the UserUpdated event of the same append records the audit entry.',
  schema: z.object({ ...user, credential_id: z.uuid(), by: z.enum(['self', 'admin', 'cli']) }),
  audit: ({ data }) => (data.by === 'self' ? { action: 'password_change', target: ['user', data.user_id] } : undefined),
  frames: ({ data, meta }) =>
    data.by === 'self'
      ? [
          {
            type: 'audit.security',
            role: 'admin',
            data: {
              action: 'password_change',
              actor: meta.actor.name,
              target_type: 'user',
              target_id: data.user_id,
              timestamp: seconds(meta.at),
            },
          },
        ]
      : [],
});

export const userMoved = defineEvent({
  type: 'UserMoved',
  doc: 'A user was moved to another workspace, because the old one was removed.',
  schema: z.object({ ...user, tenant: z.int().positive(), workspace: z.int().positive() }),
});

export const userTransferred = defineEvent({
  type: 'UserTransferred',
  doc: 'An admin moved a user to another workspace. Sessions and open streams of the user follow.',
  schema: z.object({ ...user, tenant: z.int().positive(), workspace: z.int().positive() }),
  audit: ({ data }) => ({
    action: 'user_update',
    target: ['user', data.user_id],
    detail: { workspace_id: data.workspace, tenant_id: data.tenant },
  }),
});

export const userDeleted = defineEvent({
  type: 'UserDeleted',
  doc: 'A user was deleted: sessions and password stop working, and the name is free. Past actions of the user remain in the history.',
  schema: z.object(user),
  audit: ({ data }) => ({ action: 'user_delete', target: ['user', data.user_id], detail: { username: data.username } }),
});

export const googleDisconnected = defineEvent({
  type: 'GoogleDisconnected',
  doc: 'A user was switched from Google sign-in back to a password. All sessions of the user end.',
  schema: z.object(user),
  audit: ({ data }) => ({ action: 'google_disconnect', target: ['user', data.user_id] }),
});
