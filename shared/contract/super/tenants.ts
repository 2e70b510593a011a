/** Tenants: the record, new tenants, and decommissioning. */
import { z } from 'zod';
import { tenantFields } from '../../events/super/tenants.ts';
import { limitParam, offsetParam, unixSeconds } from '../common.ts';
import { filledText, storableObject, text } from '../storable.ts';
import { JOB_STATUSES, provisionJobDetailSchema } from './provision-jobs.ts';

export const tenantSchema = z
  .object({
    id: z.int(),
    ...tenantFields.shape,
    created_by: z.string(),
    owner_gateway: z.string().nullable(),
    workspace_id: z.int().describe('its main workspace: create its first admin there'),
    created_at: unixSeconds,
    updated_at: unixSeconds,
  })
  .meta({ id: 'Tenant' });
export type TenantRecord = z.infer<typeof tenantSchema>;

export const listedTenantSchema = tenantSchema.extend({
  latest_job_id: z.int().nullable(),
  latest_job_status: z.enum(JOB_STATUSES).nullable(),
  latest_job_created_at: unixSeconds.nullable(),
});
export type ListedTenant = z.infer<typeof listedTenantSchema>;

export const tenantsQuery = z.object({ limit: limitParam(200), offset: offsetParam });
export const tenantsResponse = z.object({ tenants: z.array(listedTenantSchema) });
export const tenantResponse = z.object({ tenant: tenantSchema, job: provisionJobDetailSchema });

const SLUG = /^[a-z0-9][a-z0-9-]{1,30}[a-z0-9]$/;
const LINUX_USER = /^[a-z_][a-z0-9_-]{1,30}$/;
const port = z.int().min(1_024).max(65_535);

/** `9-lives` → `t9-lives`: accounts begin with a letter. */
const linuxUserOf = (slug: string): string => (/^[a-z]/.test(slug) ? slug : `t${slug}`).slice(0, 31);

export const newTenantBody = z
  .object({
    slug: z
      .string()
      .trim()
      .toLowerCase()
      .regex(SLUG, 'must have 3 to 32 characters of a to z, 0 to 9 and -, and begin and end with a letter or a digit')
      .describe('unique'),
    display_name: filledText(200).optional().describe('required, here or as `name`'),
    name: filledText(200).optional().describe('the same as `display_name`'),
    linux_user: z
      .string()
      .trim()
      .regex(LINUX_USER, 'must have 2 to 31 characters of a to z, 0 to 9, _ and -, and begin with a letter or _')
      .optional()
      .describe('unique; default: derived from the slug'),
    gateway_port: port,
    dashboard_port: port.nullable().default(null),
    plan_tier: filledText(50).toLowerCase().default('standard'),
    dry_run: z.boolean().default(true),
    config: storableObject.default({}),
    owner_gateway: filledText(120).optional(),
  })
  .transform(({ name, ...body }, context) => {
    const display_name = body.display_name ?? name;
    if (display_name === undefined)
      context.addIssue({ code: 'custom', path: ['display_name'], message: 'is missing; send the name of the tenant' });
    return { ...body, display_name: display_name ?? '', linux_user: body.linux_user ?? linuxUserOf(body.slug) };
  });
export type NewTenantBody = z.output<typeof newTenantBody>;

export const decommissionBody = z.object({
  dry_run: z.boolean().default(true),
  remove_linux_user: z.boolean().default(false),
  remove_state_dirs: z.boolean().default(false),
  reason: text(1_000).optional(),
});
export type DecommissionBody = z.output<typeof decommissionBody>;
