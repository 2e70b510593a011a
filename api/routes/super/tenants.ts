/** Tenants of the deployment. */
import type { Executed } from '../../../commands/handler.ts';
import { createTenant } from '../../../commands/super/changes.ts';
import { decommission, type JobPlace } from '../../../commands/super/provision-jobs.ts';
import { jobAfter } from '../../../queries/super/provision-jobs.ts';
import { listTenants, tenantAfter } from '../../../queries/super/tenants.ts';
import { idParams } from '../../../shared/contract/common.ts';
import * as contract from '../../../shared/contract/super/tenants.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

async function response({ records }: Services, place: JobPlace, executed: Executed) {
  const [tenant, job] = await Promise.all([
    tenantAfter(records, place.tenant, executed),
    jobAfter(records, place, executed),
  ]);
  return { status: 201, body: { tenant, job } };
}

const list = defineCachedRoute({
  method: 'get',
  path: '/api/super/tenants',
  summary: 'List tenants, newest first',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'all', prompts: 'none' },
  scope: 'deployment',
  query: contract.tenantsQuery,
  responses: { 200: { description: 'Tenants with their latest job', schema: contract.tenantsResponse } },
  cache: { models: ['tenants'], scope: 'all', caller: [] },
  respond: async ({ query, services }) => ({ tenants: await listTenants(services.reads, query) }),
});

const create = defineRoute({
  method: 'post',
  path: '/api/super/tenants',
  summary: 'Create a tenant, with its main workspace and a bootstrap job',
  description:
    'The job waits for approval. Create the first admin of the tenant in `workspace_id` with `POST /api/auth/users`.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  body: contract.newTenantBody,
  responses: { 201: { description: 'Tenant and job', schema: contract.tenantResponse } },
  async handle({ body, services, command }) {
    const { commands, settings } = services;
    const { executed, ...place } = await createTenant(commands, command, settings, body);
    return response(services, place, executed);
  },
});

const takeDown = defineRoute({
  method: 'post',
  path: '/api/super/tenants/{id}/decommission',
  summary: 'Queue a job that takes a tenant down',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  params: idParams,
  body: contract.decommissionBody,
  bodyOptional: true,
  refuses: [404],
  responses: { 201: { description: 'Tenant and job', schema: contract.tenantResponse } },
  async handle({ params, body, services, command }) {
    const { id, executed } = await decommission(services.commands, command, params.id, body);
    return response(services, { tenant: params.id, job: id }, executed);
  },
});

export const tenantRoutes: readonly Route[] = [list, create, takeDown];
