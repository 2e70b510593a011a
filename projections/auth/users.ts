/**
 * Users and access requests, as they are now.
 *
 * `session_mark` changes with every event that ends a user's sessions (another password, disabled, another way to
 * sign in). A session carries the mark of its sign-in and is good only while it equals the user's.
 */
import { accessRequestApproved, accessRequested, accessRequestRejected } from '../../shared/events/auth/access.ts';
import {
  googleDisconnected,
  userCreated,
  userDeleted,
  userMoved,
  userPasswordChanged,
  userSignedIn,
  userUpdated,
} from '../../shared/events/auth/users.ts';
import type { EventOf } from '../../shared/events/define.ts';
import { seconds } from '../../shared/time.ts';
import { change, defineProjection, defineTable, on, update } from '../projection.ts';

export const usersTable = defineTable(
  'users',
  {
    id: 'bigint',
    username: 'text',
    display_name: 'text?',
    email: 'text?',
    /** Lower case, to be found by. */
    email_key: 'text?',
    avatar_url: 'text?',
    role: 'text',
    provider: 'text',
    provider_id: 'text?',
    is_approved: 'boolean',
    tenant_id: 'int',
    workspace_id: 'int',
    credential_id: 'text?',
    session_mark: 'text',
    created_at: 'bigint',
    updated_at: 'bigint',
    last_login_at: 'bigint?',
  },
  { key: ['id'], indexes: ['username', 'workspace_id, created_at, id', 'email_key', 'provider_id'] },
);

/** One row once there was a user, whatever became of them: a deployment is set up once. */
export const firstUserTable = defineTable('first_user', { one: 'int', user_id: 'bigint' }, { key: ['one'] });

export const accessRequestsTable = defineTable(
  'access_requests',
  {
    id: 'bigint',
    provider: 'text',
    email: 'text?',
    provider_id: 'text?',
    display_name: 'text?',
    avatar_url: 'text?',
    status: 'text',
    /** 1 while pending: the list begins with these. */
    pending: 'int',
    requested_at: 'bigint',
    last_attempt_at: 'bigint',
    attempt_count: 'int',
    reviewed_by: 'text?',
    reviewed_at: 'bigint?',
    review_note: 'text?',
    approved_user_id: 'bigint?',
  },
  {
    key: ['id'],
    indexes: [
      'pending DESC, last_attempt_at DESC, id DESC',
      'status, last_attempt_at DESC, id DESC',
      'email',
      'provider_id',
    ],
  },
);

const markOf = (credential: string | null, event: { readonly meta: { readonly number: number } }): string =>
  `${credential ?? 'none'}.${event.meta.number}`;

const emailKey = (email: string | null): string | null => email?.toLowerCase() ?? null;

/** The columns that an update sets. */
function changed({ data }: EventOf<typeof userUpdated>) {
  const { displayName, email, avatarUrl, role, provider, providerId, isApproved } = data;
  return {
    ...(displayName !== undefined && { display_name: displayName }),
    ...(email !== undefined && { email, email_key: emailKey(email) }),
    ...(avatarUrl !== undefined && { avatar_url: avatarUrl }),
    ...(role !== undefined && { role }),
    ...(provider !== undefined && { provider }),
    ...(providerId !== undefined && { provider_id: providerId }),
    ...(isApproved !== undefined && { is_approved: isApproved }),
  };
}

export const usersProjection = defineProjection({
  name: 'users',
  version: 2,
  tables: [usersTable, accessRequestsTable, firstUserTable],
  handlers: [
    on(userCreated, (event) => {
      const { data, meta } = event;
      const at = seconds(meta.at);
      return [
        change(usersTable, { id: data.userId }, () => ({
          id: data.userId,
          username: data.username,
          display_name: data.displayName,
          email: data.email,
          email_key: emailKey(data.email),
          avatar_url: data.avatarUrl,
          role: data.role,
          provider: data.provider,
          provider_id: data.providerId,
          is_approved: data.isApproved,
          tenant_id: data.tenant,
          workspace_id: data.workspace,
          credential_id: data.credentialId,
          session_mark: markOf(data.provider === 'google' ? 'google' : data.credentialId, event),
          created_at: at,
          updated_at: at,
          last_login_at: null,
        })),
        change(firstUserTable, { one: 1 }, (row) => row ?? { one: 1, user_id: data.userId }),
      ];
    }),
    on(userUpdated, (event) => [
      update(usersTable, { id: event.data.userId }, (row) => {
        const next = { ...row, ...changed(event), updated_at: seconds(event.meta.at) };
        const ended = (row.is_approved && !next.is_approved) || row.provider !== next.provider;
        const credential = next.provider === 'google' ? 'google' : next.credential_id;
        return ended ? { ...next, session_mark: markOf(credential, event) } : next;
      }),
    ]),
    on(userPasswordChanged, (event) => [
      update(usersTable, { id: event.data.userId }, (row) => ({
        ...row,
        credential_id: event.data.credentialId,
        session_mark: markOf(row.provider === 'google' ? 'google' : event.data.credentialId, event),
        updated_at: seconds(event.meta.at),
      })),
    ]),
    on(googleDisconnected, (event) => [
      update(usersTable, { id: event.data.userId }, (row) => ({
        ...row,
        provider: 'local',
        provider_id: null,
        session_mark: markOf(row.credential_id, event),
        updated_at: seconds(event.meta.at),
      })),
    ]),
    on(userMoved, ({ data, meta }) => [
      update(usersTable, { id: data.userId }, (row) => ({
        ...row,
        tenant_id: data.tenant,
        workspace_id: data.workspace,
        updated_at: seconds(meta.at),
      })),
    ]),
    on(userDeleted, ({ data }) => [update(usersTable, { id: data.userId }, () => undefined)]),
    on(userSignedIn, ({ data, meta }) => [
      update(usersTable, { id: data.userId }, (row) => ({
        ...row,
        last_login_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      })),
    ]),
    on(accessRequested, ({ data, meta }) => {
      const at = seconds(meta.at);
      return [
        change(accessRequestsTable, { id: data.requestId }, (row) => ({
          id: data.requestId,
          provider: data.provider,
          email: data.email,
          provider_id: data.providerId,
          display_name: data.displayName,
          avatar_url: data.avatarUrl,
          status: 'pending',
          pending: 1,
          requested_at: row?.requested_at ?? at,
          last_attempt_at: at,
          attempt_count: (row?.attempt_count ?? 0) + 1,
          reviewed_by: row?.reviewed_by ?? null,
          reviewed_at: row?.reviewed_at ?? null,
          review_note: row?.review_note ?? null,
          approved_user_id: row?.approved_user_id ?? null,
        })),
      ];
    }),
    on(accessRequestApproved, ({ data, meta }) => [
      update(accessRequestsTable, { id: data.requestId }, (row) => ({
        ...row,
        status: 'approved',
        pending: 0,
        reviewed_by: meta.actor.name,
        reviewed_at: seconds(meta.at),
        review_note: data.note,
        approved_user_id: data.userId,
      })),
    ]),
    on(accessRequestRejected, ({ data, meta }) => [
      update(accessRequestsTable, { id: data.requestId }, (row) => ({
        ...row,
        status: 'rejected',
        pending: 0,
        reviewed_by: meta.actor.name,
        reviewed_at: seconds(meta.at),
        review_note: data.note,
      })),
    ]),
  ],
});
