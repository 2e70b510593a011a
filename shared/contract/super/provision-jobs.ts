/** Provisioning jobs: the record, new jobs, and decisions about them. */
import { z } from 'zod';
import { JOB_TYPES } from '../../events/super/provision-jobs.ts';
import { filterParam, idText, idValue, limitParam, offsetParam, unixSeconds } from '../common.ts';
import { filledText, storable, storableObject, text } from '../storable.ts';

export const JOB_STATUSES = ['queued', 'approved', 'running', 'completed', 'failed', 'rejected', 'cancelled'] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

const stepSchema = z.object({
  key: z.string(),
  title: z.string(),
  command: z.array(z.string().nullable()),
  requires_root: z.boolean(),
  timeout_ms: z.int().optional(),
});
export type StepRecord = z.infer<typeof stepSchema>;

export const provisionJobSchema = z
  .object({
    id: z.int(),
    tenant_id: z.int(),
    job_type: z.enum(JOB_TYPES),
    status: z.enum(JOB_STATUSES),
    dry_run: z.union([z.literal(0), z.literal(1)]),
    requested_by: z.string(),
    approved_by: z.string().nullable(),
    runner_host: z.string().nullable(),
    idempotency_key: z.string().nullable(),
    request_json: z.record(z.string(), z.unknown()),
    plan_json: z.array(stepSchema),
    result_json: z
      .object({
        dry_run: z.boolean(),
        steps_executed: z.int(),
        steps: z.array(z.object({ key: z.string(), ok: z.boolean(), skipped: z.boolean() })),
      })
      .nullable(),
    error_text: z.string().nullable(),
    started_at: unixSeconds.nullable(),
    completed_at: unixSeconds.nullable(),
    created_at: unixSeconds,
    updated_at: unixSeconds,
    tenant_slug: z.string(),
    tenant_display_name: z.string(),
  })
  .meta({ id: 'ProvisionJob' });
export type ProvisionJobRecord = z.infer<typeof provisionJobSchema>;

export const provisionJobDetailSchema = provisionJobSchema.extend({
  linux_user: z.string(),
  workspace_root: z.string(),
  events: z.array(
    z.object({
      id: z.int(),
      job_id: z.int(),
      level: z.enum(['info', 'warn', 'error']),
      step_key: z.string().nullable(),
      message: z.string(),
      data: z.string().nullable().describe('JSON'),
      created_at: unixSeconds,
    }),
  ),
});
export type ProvisionJobDetail = z.infer<typeof provisionJobDetailSchema>;

export const provisionJobsQuery = z.object({
  tenant_id: idText.optional(),
  status: filterParam,
  limit: limitParam(100),
  offset: offsetParam,
});
export type ProvisionJobsQuery = z.output<typeof provisionJobsQuery>;
export const provisionJobsResponse = z.object({ jobs: z.array(provisionJobSchema) });
export const provisionJobResponse = z.object({ job: provisionJobDetailSchema });

const step = z.object({
  key: filledText(64),
  title: filledText(200),
  command: z.array(text(2_000)).max(100).default([]),
  requires_root: z.boolean().default(false),
  timeout_ms: z.int().positive().max(86_400_000).optional(),
});

/** `storable` limits the whole; a job with more steps than this is a mistake. */
const MAX_STEPS = 100;
const plan = z
  .array(step)
  .max(MAX_STEPS)
  .refine(
    (steps) => new Set(steps.map(({ key }) => key)).size === steps.length,
    'must have a different key in each step',
  )
  .superRefine(storable());

/** Also accepts `type` and `params`, the names in other descriptions of this interface. */
export const newProvisionJobBody = z
  .object({
    tenant_id: idValue,
    job_type: z.enum(JOB_TYPES).optional().describe('default: bootstrap'),
    type: z.enum(JOB_TYPES).optional().describe('the same as `job_type`'),
    dry_run: z.boolean().default(true),
    plan_json: plan.optional().describe('default: the steps of the job type'),
    request_json: storableObject.optional().describe('default: `{}`'),
    params: storableObject.optional().describe('the same as `request_json`'),
  })
  .transform(({ type, params, ...body }, context) => {
    const request = body.request_json ?? params ?? {};
    if (request.dry_run !== undefined && request.dry_run !== body.dry_run)
      context.addIssue({
        code: 'custom',
        path: [body.request_json ? 'request_json' : 'params', 'dry_run'],
        message: `must be ${body.dry_run} like dry_run of the job, or be left out`,
      });
    return { ...body, job_type: body.job_type ?? type ?? 'bootstrap', request_json: request };
  });
export type NewProvisionJobBody = z.output<typeof newProvisionJobBody>;

export const jobDecisionBody = z.object({
  action: z.enum(['approve', 'reject', 'cancel']),
  reason: text(1_000).optional(),
});
export type JobDecisionBody = z.output<typeof jobDecisionBody>;
