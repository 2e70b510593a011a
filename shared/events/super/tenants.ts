/** Tenants of the deployment. Streams: `tenant-<id>`, which also hold their workspaces and provisioning jobs. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { actorSchema } from '../metadata.ts';

export const tenantStream = (id: number): string => `tenant-${id}`;

export const TENANT_STATUSES = ['pending', 'provisioning', 'decommissioning', 'active', 'suspended', 'error'] as const;
export type TenantStatus = (typeof TENANT_STATUSES)[number];

const port = z.int().positive().nullable();

/** What a tenant is like when it begins. */
export const tenantFields = z.object({
  slug: z.string(),
  display_name: z.string(),
  linux_user: z.string(),
  plan_tier: z.string(),
  status: z.enum(TENANT_STATUSES),
  workspace_root: z.string(),
  gateway_port: port,
  dashboard_port: port,
  config: z.record(z.string(), z.unknown()),
});

export const tenantCreated = defineEvent({
  type: 'TenantCreated',
  doc: 'A tenant was created, with its main workspace in the same append. Passwords and tokens in its configuration are sealed.',
  schema: tenantFields.extend({
    tenant_id: z.int().positive(),
    owner_gateway: z.string().nullable(),
    created_by: actorSchema,
    main_workspace: z.int().positive(),
  }),
  secrets: { fields: ['config'], owner: (data) => `tenant:${data.tenant_id}` },
});
