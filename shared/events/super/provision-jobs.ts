/** Provisioning jobs of a tenant, in the stream of their tenant: `tenant-<id>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { actorSchema } from '../metadata.ts';
import { TENANT_STATUSES } from './tenants.ts';

export const JOB_TYPES = ['bootstrap', 'update', 'decommission'] as const;
export type JobType = (typeof JOB_TYPES)[number];

const id = z.int().positive();
const job = { tenant_id: id, job_id: id, job_type: z.enum(JOB_TYPES), dry_run: z.boolean() };
const reason = z.string().nullable();
/** The new status of the tenant; null: unchanged. */
const tenant_status = z.enum(TENANT_STATUSES).nullable();

interface Job {
  readonly tenant_id: number;
  readonly job_id: number;
  readonly job_type: JobType;
  readonly dry_run: boolean;
}

const audited = (action: string, { tenant_id: tenantId, job_id, job_type, dry_run }: Job, more: object = {}) => ({
  action,
  target: ['tenant', tenantId] as const,
  detail: { job_id, job_type, dry_run, ...more },
});

export const provisionJobQueued = defineEvent({
  type: 'ProvisionJobQueued',
  doc: 'A provisioning job was requested. It does not run before it is approved. Passwords and tokens in the request and the plan are sealed.',
  schema: z.object({
    ...job,
    request: z.record(z.string(), z.unknown()),
    plan: z.array(
      z.object({
        key: z.string(),
        title: z.string(),
        /** Texts; null once the key of a sealed secret has been deleted. */
        command: z.array(z.string().nullable()),
        requires_root: z.boolean(),
        timeout_ms: z.int().nullable(),
      }),
    ),
    requested_by: actorSchema,
    idempotency_key: z.uuid().nullable(),
    reason,
  }),
  secrets: { fields: ['request', 'plan'], owner: (data) => `tenant:${data.tenant_id}` },
  audit: ({ data }) =>
    audited(data.job_type === 'decommission' ? 'tenant_decommission_requested' : 'tenant_bootstrap_requested', data, {
      ...(data.reason !== null && { reason: data.reason }),
    }),
});

const decision = { ...job, by: actorSchema, reason };
type Decided = Job & { readonly reason: string | null };
const decided = (action: string) => (event: { readonly data: Decided }) =>
  audited(action, event.data, { reason: event.data.reason });

export const provisionJobApproved = defineEvent({
  type: 'ProvisionJobApproved',
  doc: 'A provisioning job was approved.',
  schema: z.object(decision),
  audit: decided('provision_job_approved'),
});

export const provisionJobRejected = defineEvent({
  type: 'ProvisionJobRejected',
  doc: 'A provisioning job was rejected. It may still be approved later.',
  schema: z.object(decision),
  audit: decided('provision_job_rejected'),
});

export const provisionJobCancelled = defineEvent({
  type: 'ProvisionJobCancelled',
  doc: 'A provisioning job was cancelled permanently.',
  schema: z.object(decision),
  audit: decided('provision_job_cancelled'),
});

export const provisionJobStarted = defineEvent({
  type: 'ProvisionJobStarted',
  doc: 'A provisioning job started.',
  schema: z.object({ ...job, by: actorSchema, runner_host: z.string(), tenant_status }),
});

export const provisionStepEnded = defineEvent({
  type: 'ProvisionStepEnded',
  doc: 'A step of a provisioning job ended. In a dry run every step is skipped.',
  schema: z.object({ ...job, key: z.string(), title: z.string(), ok: z.boolean(), skipped: z.boolean() }),
});

export const provisionJobCompleted = defineEvent({
  type: 'ProvisionJobCompleted',
  doc: 'A provisioning job completed.',
  schema: z.object({ ...job, steps: z.int().nonnegative(), tenant_status }),
  audit: ({ data }) => audited('tenant_bootstrap_completed', data),
});

export const provisionJobFailed = defineEvent({
  type: 'ProvisionJobFailed',
  doc: 'A provisioning job failed. It may be approved again.',
  schema: z.object({ ...job, error: z.string(), tenant_status }),
  audit: ({ data }) => audited('tenant_bootstrap_failed', data, { error: data.error }),
});
