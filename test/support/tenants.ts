/** A tenant as it is made, for tests of decisions and projections. */
import { tenantCreated } from '../../shared/events/super/tenants.ts';
import { workspaceCreated } from '../../shared/events/workspaces/workspaces.ts';
import type { Draft } from './kit.ts';

/** Tenant 4 with its main workspace 9. */
export const tenantMade: readonly Draft[] = [
  tenantCreated.draft({
    tenant_id: 4,
    slug: 'acme',
    display_name: 'Acme',
    linux_user: 'acme',
    plan_tier: 'standard',
    status: 'pending',
    workspace_root: '/home/acme/workspace',
    gateway_port: 2_000,
    dashboard_port: null,
    config: { colour: 'red' },
    owner_gateway: 'primary',
    created_by: { type: 'user', id: 1, name: 'ann' },
    main_workspace: 9,
  }),
  workspaceCreated.draft({
    tenant_id: 4,
    workspace_id: 9,
    slug: 'acme',
    name: 'Acme',
    brand: null,
    isolation: 'shared',
    main: true,
  }),
];
