/** Provisioning jobs of all tenants. */
import { provisionEventsTable, provisionJobsTable } from '../../projections/super/provision-jobs.ts';
import { tenantsProjection } from '../../projections/super/tenants.ts';
import type {
  ProvisionJobDetail,
  ProvisionJobRecord,
  ProvisionJobsQuery,
} from '../../shared/contract/super/provision-jobs.ts';
import type { Reads } from '../reads.ts';
import { type Executed, type Records, rowAfter } from '../records.ts';
import { tenantRow, tenantTables } from './tenants.ts';

/** Maximum number of displayed events of a job, the latest. */
const SHOWN_EVENTS = 500;

type Column = keyof (typeof provisionJobsTable)['columns'];
const COLUMNS = (Object.keys(provisionJobsTable.columns) as Column[]).map((column) => `j.${column}` as const);

const jobs = (reads: Reads) =>
  tenantTables(reads)
    .selectFrom('provision_jobs as j')
    .innerJoin('tenants as t', 't.id', 'j.tenant_id')
    .select(COLUMNS)
    .select(['t.slug as tenant_slug', 't.display_name as tenant_display_name']);

/** Newest first. */
export async function listJobs(reads: Reads, query: ProvisionJobsQuery): Promise<ProvisionJobRecord[]> {
  const newest = jobs(reads).orderBy('j.created_at', 'desc').orderBy('j.id', 'desc');
  let rows = newest.limit(query.limit).offset(query.offset);
  if (query.tenant_id !== undefined) rows = rows.where('j.tenant_id', '=', query.tenant_id);
  if (query.status !== undefined) rows = rows.where('j.status', '=', query.status);
  return (await rows.execute()) as ProvisionJobRecord[];
}

/** A job with its events, oldest first. */
export async function jobDetail(reads: Reads, id: number): Promise<ProvisionJobDetail | undefined> {
  const job = await jobs(reads).select(['linux_user', 'workspace_root']).where('j.id', '=', id).executeTakeFirst();
  if (!job) return undefined;
  const events = await tenantTables(reads)
    .selectFrom('provision_events')
    .select(['id', 'job_id', 'level', 'step_key', 'message', 'data', 'created_at'])
    .where('job_id', '=', id)
    .orderBy('id', 'desc')
    .limit(SHOWN_EVENTS)
    .execute();
  return { ...job, events: events.reverse() } as ProvisionJobDetail;
}

/** The same after a command. @throws AppError 404 */
export async function jobAfter(
  records: Records,
  { tenant, job: id }: { readonly tenant: number; readonly job: number },
  executed: Executed,
): Promise<ProvisionJobDetail> {
  const [{ position: _, ...job }, { slug, display_name, linux_user, workspace_root }, lines] = await Promise.all([
    rowAfter(records, 'Job', [tenantsProjection, provisionJobsTable], { id }, executed),
    tenantRow(records, tenant, executed),
    records.all(tenantsProjection, provisionEventsTable, { job_id: id }, executed),
  ]);
  const events = lines
    .map(({ position: _, ...line }) => line)
    .sort((a, b) => a.id - b.id)
    .slice(-SHOWN_EVENTS);
  const ofTenant = { tenant_slug: slug, tenant_display_name: display_name, linux_user, workspace_root };
  return { ...job, ...ofTenant, events } as ProvisionJobDetail;
}

/** The tenant of a job. */
export async function tenantOfJob(reads: Reads, id: number): Promise<number | undefined> {
  const jobs = tenantTables(reads).selectFrom('provision_jobs').select('tenant_id').where('id', '=', id);
  return (await jobs.executeTakeFirst())?.tenant_id;
}
