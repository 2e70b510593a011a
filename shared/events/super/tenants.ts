/** Tenants of the deployment. Streams: `tenant-<id>`, which also hold their workspaces and provisioning jobs. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { actorSchema } from '../metadata.ts';

export const tenantStream = (id: number): string => `tenant-${id}`;

export const TENANT_STATUSES = ['pending', 'provisioning', 'decommissioning', 'active', 'suspended', 'error'] as const;
export type TenantStatus = (typeof TENANT_STATUSES)[number];

const port = z.int().positive().nullable();

export const tenantCreated = defineEvent({
  type: 'TenantCreated',
  version: 1,
  doc: 'A tenant is known from now on. Its main workspace is created by the same append. Passwords and tokens in its configuration are sealed.',
  schema: z.object({
    tenantId: z.int().positive(),
    slug: z.string(),
    displayName: z.string(),
    linuxUser: z.string(),
    planTier: z.string(),
    status: z.enum(TENANT_STATUSES),
    workspaceRoot: z.string(),
    gatewayPort: port,
    dashboardPort: port,
    config: z.record(z.string(), z.unknown()),
    ownerGateway: z.string().nullable(),
    createdBy: actorSchema,
    mainWorkspace: z.int().positive(),
  }),
  secrets: { fields: ['config'], owner: (data) => `tenant:${data.tenantId}` },
});

export const tenantEvents = [tenantCreated];
