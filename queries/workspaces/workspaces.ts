/** Workspaces of a tenant. */
import { sql } from 'kysely';
import { workspacesProjection, workspacesTable } from '../../projections/workspaces/workspaces.ts';
import { type WorkspaceRecord, workspaceSchema } from '../../shared/contract/workspaces/workspaces.ts';
import { fieldNames } from '../../shared/fields.ts';
import { countAgents } from '../agents/agents.ts';
import { type Reads, tables } from '../reads.ts';
import { columnsOf, type Executed, type Records, rowAfter } from '../records.ts';

const COLUMNS = fieldNames(workspaceSchema);

const workspaces = (reads: Reads) =>
  tables(reads, workspacesProjection).selectFrom('workspaces').where('life', '=', 'active').select(COLUMNS);

/** The main workspace first, then by name. */
export const listWorkspaces = (reads: Reads, tenant: number): Promise<WorkspaceRecord[]> =>
  workspaces(reads)
    .where('tenant_id', '=', tenant)
    .orderBy('main', 'desc')
    .orderBy(sql`lower(name)`)
    .orderBy('id')
    .execute();

/** Workspaces of all tenants, by id, including deleted ones: their remaining data also expires. */
export async function allWorkspaces(
  reads: Reads,
): Promise<readonly { readonly id: number; readonly tenant: number }[]> {
  const all = tables(reads, workspacesProjection).selectFrom('workspaces');
  const rows = await all.select(['id', 'tenant_id']).orderBy('id').execute();
  return rows.map(({ id, tenant_id: tenant }) => ({ id, tenant }));
}

/** A workspace of any tenant. */
export const findWorkspace = (reads: Reads, id: number): Promise<WorkspaceRecord | undefined> =>
  workspaces(reads).where('id', '=', id).executeTakeFirst();

/** A workspace of any tenant: slugs are unique in the deployment. */
export const findWorkspaceBySlug = (reads: Reads, slug: string): Promise<WorkspaceRecord | undefined> =>
  workspaces(reads).where('slug', '=', slug).executeTakeFirst();

/** A workspace after a command of its tenant. */
export async function workspaceAfter(records: Records, id: number, executed: Executed): Promise<WorkspaceRecord> {
  const row = await rowAfter(records, 'Workspace', [workspacesProjection, workspacesTable], { id }, executed);
  return columnsOf(row, COLUMNS);
}

/** Whether it is the main workspace of its tenant, which cannot be deleted. */
export async function isMain(reads: Reads, id: number): Promise<boolean> {
  const all = tables(reads, workspacesProjection).selectFrom('workspaces');
  return (await all.select('main').where('id', '=', id).executeTakeFirst())?.main ?? false;
}

/** The isolation of a workspace, even while it is being deleted. */
export async function isolationOf(reads: Reads, id: number): Promise<string | undefined> {
  const all = tables(reads, workspacesProjection).selectFrom('workspaces');
  return (await all.select('isolation').where('id', '=', id).executeTakeFirst())?.isolation;
}

/** A workspace of this tenant with the number of its agents; undefined when the tenant has no such workspace. */
export async function workspaceDetail(reads: Reads, tenant: number, id: number) {
  const workspace = await findWorkspace(reads, id);
  if (workspace?.tenant_id !== tenant) return undefined;
  return { ...workspace, agent_count: await countAgents(reads, id) };
}
