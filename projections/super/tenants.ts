/** Tenants of the deployment, with the latest job of each. The same projection has their provisioning jobs. */
import { tenantSchema } from '../../shared/contract/super/tenants.ts';
import { type TenantStatus, tenantCreated } from '../../shared/events/super/tenants.ts';
import { seconds } from '../../shared/time.ts';
import { columnsFor } from '../columns.ts';
import { type Change, defineProjection, defineTable, insert, on, type RowOf, update } from '../projection.ts';
import { jobHandlers, provisionEventsTable, provisionJobsTable } from './provision-jobs.ts';

export const tenantsTable = defineTable(
  'tenants',
  {
    ...columnsFor(tenantSchema.omit({ workspace_id: true, created_at: true, updated_at: true })),
    gateway_port: 'int?',
    dashboard_port: 'int?',
    main_workspace: 'int',
    created_at: 'bigint',
    updated_at: 'bigint',
    latest_job_id: 'bigint?',
    latest_job_status: 'text?',
    latest_job_created_at: 'bigint?',
  },
  { key: ['id'], indexes: ['created_at, id'] },
);

type Tenant = RowOf<(typeof tenantsTable)['columns']>;

/** The tenant's row after a change of one of its jobs: it shows the latest job. */
function ofJob(
  { meta, data }: { readonly meta: { readonly at: number }; readonly data: { tenant_id: number; job_id: number } },
  status: string,
  tenantStatus: TenantStatus | null,
  isNew: boolean,
): Change {
  const at = seconds(meta.at);
  return update(tenantsTable, { id: data.tenant_id }, (row): Tenant => {
    const isLatest = isNew ? data.job_id >= (row.latest_job_id ?? 0) : data.job_id === row.latest_job_id;
    return {
      ...row,
      ...(tenantStatus !== null && { status: tenantStatus, updated_at: at }),
      ...(isLatest && { latest_job_status: status }),
      ...(isLatest && isNew && { latest_job_id: data.job_id, latest_job_created_at: at }),
    };
  });
}

export const tenantsProjection = defineProjection({
  name: 'tenants',
  version: 1,
  tables: [tenantsTable, provisionJobsTable, provisionEventsTable],
  handlers: [
    on(tenantCreated, ({ data: { tenant_id: id, created_by: creator, ...fields }, meta }) => [
      insert(tenantsTable, {
        id,
        ...fields,
        created_by: creator.name,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
        latest_job_id: null,
        latest_job_status: null,
        latest_job_created_at: null,
      }),
    ]),
    ...jobHandlers(ofJob),
  ],
});
