/** Tenants of the deployment. */
import { tenantsProjection, tenantsTable } from '../../projections/super/tenants.ts';
import { type ListedTenant, type TenantRecord, tenantSchema } from '../../shared/contract/super/tenants.ts';
import { fieldNames } from '../../shared/fields.ts';
import { type Reads, tables } from '../reads.ts';
import { columnsOf, type Executed, type Records, rowAfter } from '../records.ts';

export const tenantTables = (reads: Reads) => tables(reads, tenantsProjection);

const OWN = fieldNames(tenantSchema.omit({ workspace_id: true }));
const COLUMNS = [...OWN, 'main_workspace as workspace_id'] as const;

/** Newest first. */
export async function listTenants(
  reads: Reads,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<ListedTenant[]> {
  const rows = await tenantTables(reads)
    .selectFrom('tenants')
    .select([...COLUMNS, 'latest_job_id', 'latest_job_status', 'latest_job_created_at'])
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
  return rows as ListedTenant[];
}

/** The row of a tenant after a command. */
export const tenantRow = (records: Records, id: number, executed: Executed) =>
  rowAfter(records, 'Tenant', [tenantsProjection, tenantsTable], { id }, executed);

export async function tenantAfter(records: Records, id: number, executed: Executed): Promise<TenantRecord> {
  const row = await tenantRow(records, id, executed);
  return { ...columnsOf(row, OWN), workspace_id: row.main_workspace };
}
