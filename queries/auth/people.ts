/** Finds people for their erasure: users, including deleted ones, and their data in the read models. */

import { usersProjection } from '../../projections/auth/users.ts';
import { auditProjection } from '../../projections/monitoring/audit.ts';
import { type Reads, tables } from '../reads.ts';
import { allWorkspaces } from '../workspaces/workspaces.ts';

/** Audit entries of a person per page. */
const MOST_ENTRIES = 500;

/** A user, including one who was deleted but not erased. */
export interface FoundPerson {
  readonly id: number;
  readonly tenant: number;
  readonly workspace: number;
  readonly deleted: boolean;
}

/** An entry of the audit trail. */
export interface AuditPlace {
  readonly workspace: number;
  readonly id: number;
}

/** The lookups of erasures. */
export type PeopleDirectory = ReturnType<typeof peopleDirectory>;
/** @param readsNow reads as of each call, because an erasure reads again what it has changed */
export function peopleDirectory(readsNow: () => Reads) {
  const people = () => tables(readsNow(), usersProjection);
  return {
    /** Users who have or had this username. */
    async named(username: string): Promise<readonly FoundPerson[]> {
      const columns = ['id', 'tenant_id', 'workspace_id'] as const;
      const present = await people().selectFrom('users').select(columns).where('username', '=', username).execute();
      const gone = await people()
        .selectFrom('deleted_users')
        .select(columns)
        .where('username', '=', username)
        .orderBy('id')
        .execute();
      const found =
        (deleted: boolean) =>
        (row: { id: number; tenant_id: number; workspace_id: number }): FoundPerson => ({
          id: row.id,
          tenant: row.tenant_id,
          workspace: row.workspace_id,
          deleted,
        });
      return [...present.map(found(false)), ...gone.map(found(true))];
    },
    /** Ids of the access requests of a user: those that were approved for it, and those of its account or address. */
    async requestsOf(userId: number, email: string | null, providerId: string | null): Promise<readonly number[]> {
      const rows = await people()
        .selectFrom('access_requests')
        .select('id')
        .where(({ eb, or }) =>
          or([
            eb('approved_user_id', '=', userId),
            ...(email === null ? [] : [eb('email', '=', email.toLowerCase())]),
            ...(providerId === null ? [] : [eb('provider_id', '=', providerId)]),
          ]),
        )
        .orderBy('id')
        .execute();
      return rows.map(({ id }) => id);
    },
    /** Workspaces of tenants, including deleted ones. */
    async workspacesOf(tenants: readonly number[]): Promise<readonly number[]> {
      const all = await allWorkspaces(readsNow());
      return all.filter(({ tenant }) => tenants.includes(tenant)).map(({ id }) => id);
    },
    /** Audit entries with personal fields of a person (`user:7`); some of them, by workspace, if there are many. */
    async auditEntriesOf(person: string): Promise<readonly AuditPlace[]> {
      const rows = await tables(readsNow(), auditProjection)
        .selectFrom('audit')
        .select(['workspace_id', 'id'])
        .where(({ eb, or }) => or([eb('address_of', '=', person), eb('about', '=', person)]))
        .orderBy('workspace_id')
        .orderBy('id')
        .limit(MOST_ENTRIES)
        .execute();
      return rows.map(({ workspace_id: workspace, id }) => ({ workspace, id }));
    },
  };
}
