/** Provisioning jobs, and their history. Handled by the projection of tenants, whose rows show the latest job. */
import type { JobStatus } from '../../shared/contract/super/provision-jobs.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import {
  provisionJobApproved,
  provisionJobCancelled,
  provisionJobCompleted,
  provisionJobFailed,
  provisionJobQueued,
  provisionJobRejected,
  provisionJobStarted,
  provisionStepEnded,
} from '../../shared/events/super/provision-jobs.ts';
import type { TenantStatus } from '../../shared/events/super/tenants.ts';
import { seconds } from '../../shared/time.ts';
import { type Change, change, defineTable, type Handler, insert, on, type RowOf, set, update } from '../projection.ts';

export const provisionJobsTable = defineTable(
  'provision_jobs',
  {
    id: 'bigint',
    tenant_id: 'bigint',
    job_type: 'text',
    status: 'text',
    dry_run: 'int',
    requested_by: 'text',
    approved_by: 'text?',
    runner_host: 'text?',
    idempotency_key: 'text?',
    request_json: 'jsonb',
    plan_json: 'jsonb',
    result_json: 'jsonb?',
    error_text: 'text?',
    started_at: 'bigint?',
    completed_at: 'bigint?',
    created_at: 'bigint',
    updated_at: 'bigint',
  },
  {
    key: ['id'],
    indexes: ['created_at, id', 'tenant_id, created_at, id', 'status, created_at, id'],
  },
);

export const provisionEventsTable = defineTable(
  'provision_events',
  {
    job_id: 'bigint',
    id: 'bigint',
    level: 'text',
    step_key: 'text?',
    message: 'text',
    data: 'text?',
    created_at: 'bigint',
  },
  { key: ['job_id', 'id'] },
);

type Job = RowOf<(typeof provisionJobsTable)['columns']>;
type JobEvent = DomainEvent<string, { readonly tenant_id: number; readonly job_id: number }>;

/** The change of a tenant's row for an event of its job. */
export type TenantOfJob = (
  event: JobEvent,
  status: JobStatus,
  tenantStatus: TenantStatus | null,
  isNew: boolean,
) => Change;

const job = ({ data, meta }: JobEvent, changes: Partial<Job>): Change =>
  set(provisionJobsTable, { id: data.job_id }, meta, changes);

function line(
  { data: { job_id }, meta }: JobEvent,
  level: 'info' | 'warn' | 'error',
  step_key: string,
  message: string,
  data: object | null = null,
): Change {
  const key = { job_id, id: meta.number };
  const about = data === null ? null : JSON.stringify(data);
  return change(provisionEventsTable, key, () => ({
    ...key,
    level,
    step_key,
    message,
    data: about,
    created_at: seconds(meta.at),
  }));
}

const because = ({ reason }: { readonly reason: string | null }) => (reason === null ? null : { reason });

export const jobHandlers = (tenant: TenantOfJob): readonly Handler[] => [
  on(provisionJobQueued, (event) => {
    const { data, meta } = event;
    const at = seconds(meta.at);
    return [
      insert(provisionJobsTable, {
        id: data.job_id,
        tenant_id: data.tenant_id,
        job_type: data.job_type,
        status: 'queued',
        dry_run: data.dry_run ? 1 : 0,
        requested_by: data.requested_by.name,
        approved_by: null,
        runner_host: null,
        idempotency_key: data.idempotency_key,
        request_json: data.request,
        plan_json: data.plan.map(({ key, title, command, requires_root, timeout_ms }) => ({
          key,
          title,
          command,
          requires_root,
          ...(timeout_ms !== null && { timeout_ms }),
        })),
        result_json: null,
        error_text: null,
        started_at: null,
        completed_at: null,
        created_at: at,
        updated_at: at,
      }),
      line(event, 'info', 'queued', `${data.requested_by.name} asked for the job`, because(data)),
      tenant(event, 'queued', null, true),
    ];
  }),
  on(provisionJobApproved, (event) => [
    job(event, { status: 'approved', approved_by: event.data.by.name, error_text: null, completed_at: null }),
    line(event, 'info', 'approval', `${event.data.by.name} approved the job`, because(event.data)),
    tenant(event, 'approved', null, false),
  ]),
  on(provisionJobRejected, (event) => [
    job(event, { status: 'rejected' }),
    line(event, 'warn', 'approval', `${event.data.by.name} rejected the job`, because(event.data)),
    tenant(event, 'rejected', null, false),
  ]),
  on(provisionJobCancelled, (event) => [
    job(event, { status: 'cancelled', completed_at: seconds(event.meta.at) }),
    line(event, 'warn', 'cancel', `${event.data.by.name} cancelled the job`, because(event.data)),
    tenant(event, 'cancelled', null, false),
  ]),
  on(provisionJobStarted, (event) => {
    const { dry_run, by, runner_host, tenant_status: tenantStatus } = event.data;
    const started = { started_at: seconds(event.meta.at), completed_at: null, runner_host };
    const result_json = { dry_run, steps_executed: 0, steps: [] };
    return [
      job(event, { status: 'running', ...started, result_json }),
      line(event, 'info', 'start', `${by.name} began a ${dry_run ? 'dry' : 'live'} run`),
      tenant(event, 'running', tenantStatus, false),
    ];
  }),
  on(provisionStepEnded, (event) => {
    const { key, title, ok, skipped } = event.data;
    return [
      update(provisionJobsTable, { id: event.data.job_id }, (row) => {
        const result = row.result_json as { readonly steps_executed: number; readonly steps: readonly object[] };
        const steps_executed = result.steps_executed + (skipped ? 0 : 1);
        return { ...row, result_json: { ...result, steps_executed, steps: [...result.steps, { key, ok, skipped }] } };
      }),
      line(event, ok ? 'info' : 'error', key, skipped ? `Skipped in a dry run: ${title}` : title),
    ];
  }),
  on(provisionJobCompleted, (event) => [
    job(event, { status: 'completed', completed_at: seconds(event.meta.at), error_text: null }),
    line(event, 'info', 'finish', 'The job is done', { steps: event.data.steps }),
    tenant(event, 'completed', event.data.tenant_status, false),
  ]),
  on(provisionJobFailed, (event) => [
    job(event, { status: 'failed', completed_at: seconds(event.meta.at), error_text: event.data.error }),
    line(event, 'error', 'error', event.data.error),
    tenant(event, 'failed', event.data.tenant_status, false),
  ]),
];
