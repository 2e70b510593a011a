/** Tenants of the deployment. */
import { tenantsProjection } from '../../projections/super/tenants.ts';
import type { ListedTenant, TenantRecord } from '../../shared/contract/super/tenants.ts';
import { type Reads, tables } from '../reads.ts';

export const tenantTables = (reads: Reads) => tables(reads, tenantsProjection);

const COLUMNS = [
  'id',
  'slug',
  'display_name',
  'linux_user',
  'plan_tier',
  'status',
  'workspace_root',
  'gateway_port',
  'dashboard_port',
  'config',
  'created_by',
  'owner_gateway',
  'main_workspace as workspace_id',
  'created_at',
  'updated_at',
] as const;

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

export const findTenant = (reads: Reads, id: number): Promise<TenantRecord | undefined> =>
  tenantTables(reads).selectFrom('tenants').select(COLUMNS).where('id', '=', id).executeTakeFirst() as Promise<
    TenantRecord | undefined
  >;
