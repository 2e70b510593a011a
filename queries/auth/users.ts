/** Users. Records have no credential ids; rows do, for sign-in and sessions. */
import { sql } from 'kysely';
import { usersProjection, usersTable } from '../../projections/auth/users.ts';
import type { Row } from '../../projections/projection.ts';
import { type UserRecord, userSchema } from '../../shared/contract/auth/users.ts';
import type { Provider } from '../../shared/events/auth/users.ts';
import { fieldNames } from '../../shared/fields.ts';
import { inWorkspace, type Reads, tables } from '../reads.ts';
import { columnsOf, type Executed, type Records, rowAfter } from '../records.ts';
import { findWorkspaceBySlug } from '../workspaces/workspaces.ts';
import { findAccessRequestOf } from './access-requests.ts';

export type UserRow = Row<typeof usersTable>;

const own = (reads: Reads) => tables(reads, usersProjection);

const FIELDS = fieldNames(userSchema);

export const toUserRecord = (row: UserRow): UserRecord => ({
  ...columnsOf(row, FIELDS),
  display_name: row.display_name ?? row.username,
  is_approved: row.is_approved ? 1 : 0,
});

/** Ids of the enabled admins of a tenant, the oldest first. */
export const adminsIn =
  (reads: Reads) =>
  async (tenant: number): Promise<number[]> => {
    const rows = await own(reads)
      .selectFrom('users')
      .select('id')
      .where('tenant_id', '=', tenant)
      .where('role', '=', 'admin')
      .where('is_approved', '=', true)
      .orderBy('id')
      .limit(100)
      .execute();
    return rows.map(({ id }) => id);
  };

/** Usernames of the admins in a workspace. */
export async function adminNames(reads: Reads, workspace: number): Promise<string[]> {
  const rows = await own(reads)
    .selectFrom('users')
    .select('username')
    .where('workspace_id', '=', workspace)
    .where('role', '=', 'admin')
    .where('is_approved', '=', true)
    .orderBy('id')
    .limit(100)
    .execute();
  return rows.map(({ username }) => username);
}

export const findUser = (reads: Reads, id: number): Promise<UserRow | undefined> =>
  own(reads).selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst();

export const findUsers = (reads: Reads, ids: readonly number[]): Promise<UserRow[]> =>
  own(reads).selectFrom('users').selectAll().where(sql<boolean>`id = ANY(${ids})`).execute();

export const findUsersByName = (reads: Reads, usernames: readonly string[]): Promise<UserRow[]> =>
  own(reads).selectFrom('users').selectAll().where(sql<boolean>`username = ANY(${usernames})`).execute();

export const findUserByName = (reads: Reads, username: string): Promise<UserRow | undefined> =>
  own(reads).selectFrom('users').selectAll().where('username', '=', username).executeTakeFirst();

/**
 * The user who signs in with this Google account: by its subject, otherwise by e-mail if the user has no subject yet. A
 * user with another subject is a different person, even with the same address.
 */
export async function findGoogleUser(reads: Reads, sub: string, email: string): Promise<UserRow | undefined> {
  const google = own(reads).selectFrom('users').selectAll().where('provider', '=', 'google');
  const bySubject = await google.where('provider_id', '=', sub).orderBy('id').executeTakeFirst();
  if (bySubject) return bySubject;
  return google.where('email_key', '=', email).where('provider_id', 'is', null).orderBy('id').executeTakeFirst();
}

/** The user who signs in with this account of the OpenID Connect provider. */
const findOidcUser = (reads: Reads, account: string): Promise<UserRow | undefined> =>
  own(reads)
    .selectFrom('users')
    .selectAll()
    .where('provider', '=', 'oidc')
    .where('provider_id', '=', account)
    .orderBy('id')
    .executeTakeFirst();

/** The existing user for an approved request: the holder of the account, otherwise of its e-mail address. */
export async function findUserForApproval(reads: Reads, sub: string | null, email: string | null) {
  const users = own(reads).selectFrom('users').selectAll().orderBy('id');
  const bySubject =
    sub === null
      ? undefined
      : await users.where('provider', '=', 'google').where('provider_id', '=', sub).executeTakeFirst();
  return bySubject ?? (email === null ? undefined : users.where('email_key', '=', email).executeTakeFirst());
}

/** The reads for the approval of an access request. */
export const approvalReads = (reads: Reads) => ({
  admins: adminsIn(reads),
  userIdOf: async (sub: string, email: string) => (await findUserForApproval(reads, sub, email))?.id,
});

/** Whether any user has ever existed; setup is for deployments without one. */
export async function wasSetUp(reads: Reads): Promise<boolean> {
  return (await tables(reads, usersProjection).selectFrom('first_user').select('one').executeTakeFirst()) !== undefined;
}

/** Oldest first. */
export async function listUsers(reads: Reads, workspace: number): Promise<UserRecord[]> {
  const rows = await inWorkspace(reads, usersProjection, 'users', workspace)
    .selectAll()
    .orderBy('created_at')
    .orderBy('id')
    .execute();
  return rows.map(toUserRecord);
}

/** A user for commands that do not know the stream yet. */
export interface FoundUser {
  readonly id: number;
  readonly username: string;
  readonly tenant: number;
  readonly workspace: number;
  readonly provider: Provider;
  readonly is_approved: boolean;
  readonly credential_id: string | null;
  /** A session is valid while its mark is that of its user; see `projections/auth/users.ts`. */
  readonly sessionMark: string;
  /** The user's public record. */
  readonly record: UserRecord;
}

const toFoundUser = (row: UserRow | undefined): FoundUser | undefined =>
  row && {
    id: row.id,
    username: row.username,
    tenant: row.tenant_id,
    workspace: row.workspace_id,
    provider: row.provider,
    is_approved: row.is_approved,
    credential_id: row.credential_id,
    sessionMark: row.session_mark,
    record: toUserRecord(row),
  };

/** A user after a command on their stream. @throws AppError 404 when they have been deleted */
const userRowAfter = (records: Records, id: number, executed: Executed): Promise<UserRow> =>
  rowAfter(records, 'User', [usersProjection, usersTable], { id }, executed, { mixed: true });

export const userAfter = async (...of: Parameters<typeof userRowAfter>): Promise<UserRecord> =>
  toUserRecord(await userRowAfter(...of));

/** The lookups of sign-ins. */
export type UserDirectory = ReturnType<typeof userDirectory>;
export const userDirectory = (reads: Reads, records: Records) => ({
  /** A user after a command on their stream, whatever the read model shows. @throws AppError 404 when deleted */
  after: async (id: number, executed: Executed): Promise<FoundUser> =>
    toFoundUser(await userRowAfter(records, id, executed)) as FoundUser,
  find: async (id: number) => toFoundUser(await findUser(reads, id)),
  findByName: async (username: string) => toFoundUser(await findUserByName(reads, username)),
  findByGoogleAccount: async (sub: string, email: string) => toFoundUser(await findGoogleUser(reads, sub, email)),
  findByOidcAccount: async (account: string) => toFoundUser(await findOidcUser(reads, account)),
  adminsOf: adminsIn(reads),
  /** The workspace with this slug; undefined if there is none. */
  placeOf: async (slug: string) => {
    const found = await findWorkspaceBySlug(reads, slug);
    return found && { tenant: found.tenant_id, workspace: found.id };
  },
  /** Id of an earlier access request of this account or e-mail address. */
  findAccessRequest: (sub: string, email: string) => findAccessRequestOf(reads, sub, email),
  /** Whether the deployment has ever had a user. */
  wasSetUp: () => wasSetUp(reads),
});
