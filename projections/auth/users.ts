/**
 * The current users and access requests.
 *
 * `session_mark` changes with every event that ends a user's sessions (new password, disabled, another way to sign in).
 * A session has the mark of its sign-in and is valid only while that equals the user's.
 */
import { userSchema } from '../../shared/contract/auth/users.ts';
import { personErased } from '../../shared/events/auth/people.ts';
import { userSignedIn } from '../../shared/events/auth/sign-in.ts';
import {
  googleDisconnected,
  mayHavePassword,
  type Provider,
  userCreated,
  userDeleted,
  userMoved,
  userPasswordChanged,
  userTransferred,
  userUpdated,
} from '../../shared/events/auth/users.ts';
import type { EventOf } from '../../shared/events/define.ts';
import { seconds } from '../../shared/time.ts';
import { columnsFor } from '../columns.ts';
import {
  change,
  defineProjection,
  defineTable,
  observed,
  on,
  remove,
  set,
  update,
  updateInPlace,
} from '../projection.ts';
import { accessRequestHandlers, accessRequestsTable, ERASED } from './access-requests.ts';

export const usersTable = defineTable(
  'users',
  {
    id: 'bigint',
    username: 'text',
    display_name: 'text?',
    email: 'text?',
    /** Lower case, for lookups. */
    email_key: 'text?',
    avatar_url: 'text?',
    ...columnsFor(userSchema.pick({ role: true, provider: true })),
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
  {
    key: ['id'],
    indexes: [
      'username',
      'workspace_id, created_at, id',
      'email_key',
      'provider_id',
      'workspace_id, username',
      'workspace_id, lower(username)',
    ],
  },
);

/** Users who were deleted but not erased: their personal fields are still in the log. */
export const deletedUsersTable = defineTable(
  'deleted_users',
  { id: 'bigint', username: 'text', tenant_id: 'int', workspace_id: 'int' },
  { key: ['id'], indexes: ['username'] },
);

/** Has one row once any user has existed, even if deleted since, because a deployment is set up only once. */
export const firstUserTable = defineTable('first_user', { one: 'int', user_id: 'bigint' }, { key: ['one'] });

/** How a user signs in: the part of the mark that changes with it. */
const signsInBy = (provider: Provider, credentialId: string | null): string | null =>
  mayHavePassword(provider) ? credentialId : provider;

const markOf = (credential: string | null, event: { readonly meta: { readonly number: number } }): string =>
  `${credential ?? 'none'}.${event.meta.number}`;

const emailKey = (email: string | null): string | null => email?.toLowerCase() ?? null;

/** The columns that an update sets. */
function changed({ data }: EventOf<typeof userUpdated>) {
  const { user_id, username, password_changed, by, ...columns } = data;
  return { ...columns, ...(columns.email !== undefined && { email_key: emailKey(columns.email) }) };
}

const moved = ({ data, meta }: EventOf<typeof userMoved> | EventOf<typeof userTransferred>) => [
  set(usersTable, { id: data.user_id }, meta, { tenant_id: data.tenant, workspace_id: data.workspace }),
];

export const usersProjection = defineProjection({
  name: 'users',
  version: 1,
  tables: [usersTable, deletedUsersTable, accessRequestsTable, firstUserTable],
  handlers: [
    on(userCreated, (event) => {
      const { user_id: id, tenant: tenant_id, workspace: workspace_id, source, ...fields } = event.data;
      const at = seconds(event.meta.at);
      return [
        change(usersTable, { id }, () => ({
          id,
          ...fields,
          email_key: emailKey(fields.email),
          tenant_id,
          workspace_id,
          session_mark: markOf(signsInBy(fields.provider, fields.credential_id), event),
          created_at: at,
          updated_at: at,
          last_login_at: null,
        })),
        change(firstUserTable, { one: 1 }, (row) => row ?? { one: 1, user_id: id }),
      ];
    }),
    on(userUpdated, (event) => [
      update(usersTable, { id: event.data.user_id }, (row) => {
        const next = { ...row, ...changed(event), updated_at: seconds(event.meta.at) };
        const ended = (row.is_approved && !next.is_approved) || row.provider !== next.provider;
        return ended ? { ...next, session_mark: markOf(signsInBy(next.provider, next.credential_id), event) } : next;
      }),
    ]),
    on(userPasswordChanged, (event) => [
      set(usersTable, { id: event.data.user_id }, event.meta, (row) => ({
        credential_id: event.data.credential_id,
        session_mark: markOf(signsInBy(row.provider, event.data.credential_id), event),
      })),
    ]),
    on(googleDisconnected, (event) => [
      set(usersTable, { id: event.data.user_id }, event.meta, (row) => ({
        provider: 'local',
        provider_id: null,
        session_mark: markOf(row.credential_id, event),
      })),
    ]),
    on(userMoved, moved),
    on(userTransferred, moved),
    on(userDeleted, ({ data }) => {
      const left = observed(usersTable, { id: data.user_id }, () => undefined);
      return [
        left.change,
        change(deletedUsersTable, { id: data.user_id }, (row) => {
          const { before } = left.turn();
          if (!before) return row;
          const { id, username, tenant_id, workspace_id } = before;
          return { id, username, tenant_id, workspace_id };
        }),
      ];
    }),
    on(personErased, ({ data: { kind, id } }) =>
      kind === 'user'
        ? [
            remove(deletedUsersTable, { id }),
            // The row is already deleted; this also deletes its versions of the past.
            updateInPlace(usersTable, { id }, (row) => row),
          ]
        : [updateInPlace(accessRequestsTable, { id }, (row) => ({ ...row, ...ERASED }))],
    ),
    on(userSignedIn, ({ data, meta }) => [
      set(usersTable, { id: data.user_id }, meta, { last_login_at: seconds(meta.at) }),
    ]),
    ...accessRequestHandlers,
  ],
});
