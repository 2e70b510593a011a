/** Finds people for their erasure: users, including deleted ones, and their data in the read models. */

import { usersProjection } from '../../projections/auth/users.ts';
import { auditProjection } from '../../projections/monitoring/audit.ts';
import type { FoundPerson, PeopleDirectory } from '../../shared/ports/auth/people.ts';
import { type Reads, tables } from '../reads.ts';
import { allWorkspaces } from '../workspaces/workspaces.ts';

/** Audit entries of a person per page. */
const MOST_ENTRIES = 500;

/** @param readsNow reads as of each call, because an erasure reads again what it has changed */
export function peopleDirectory(readsNow: () => Reads): PeopleDirectory {
  const people = () => tables(readsNow(), usersProjection);
  return {
    async named(username) {
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
    async requestsOf(userId, email, providerId) {
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
    async workspacesOf(tenants) {
      const all = await allWorkspaces(readsNow());
      return all.filter(({ tenant }) => tenants.includes(tenant)).map(({ id }) => id);
    },
    async auditEntriesOf(person) {
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
