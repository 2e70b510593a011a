/** A tenant as it is made, for tests of decisions and projections. */
import { tenantCreated } from '../../shared/events/super/tenants.ts';
import { workspaceCreated } from '../../shared/events/workspaces/workspaces.ts';
import { type Draft, sample } from './kit.ts';

/** Tenant 4 with its main workspace 9. */
export const tenantMade: readonly Draft[] = [
  sample(tenantCreated, {
    tenant_id: 4,
    slug: 'acme',
    display_name: 'Acme',
    linux_user: 'acme',
    plan_tier: 'standard',
    status: 'pending',
    workspace_root: '/home/acme/workspace',
    gateway_port: 2_000,
    config: { colour: 'red' },
    owner_gateway: 'primary',
    created_by: { type: 'user', id: 1, name: 'ann' },
    main_workspace: 9,
  }),
  sample(workspaceCreated, {
    tenant_id: 4,
    workspace_id: 9,
    slug: 'acme',
    name: 'Acme',
    isolation: 'shared',
    main: true,
  }),
];
