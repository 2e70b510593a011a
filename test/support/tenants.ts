/** A tenant as it is made, for tests of decisions and projections. */
import { tenantCreated } from '../../shared/events/super/tenants.ts';
import { workspaceCreated } from '../../shared/events/workspaces/workspaces.ts';
import type { Draft } from './kit.ts';

/** Tenant 4 with its main workspace 9. */
export const tenantMade: readonly Draft[] = [
  tenantCreated.draft({
    tenantId: 4,
    slug: 'acme',
    displayName: 'Acme',
    linuxUser: 'acme',
    planTier: 'standard',
    status: 'pending',
    workspaceRoot: '/home/acme/workspace',
    gatewayPort: 2_000,
    dashboardPort: null,
    config: { colour: 'red' },
    ownerGateway: 'primary',
    createdBy: { type: 'user', id: 1, name: 'ann' },
    mainWorkspace: 9,
  }),
  workspaceCreated.draft({
    tenantId: 4,
    workspaceId: 9,
    slug: 'acme',
    name: 'Acme',
    brand: null,
    isolation: 'shared',
    main: true,
  }),
];
