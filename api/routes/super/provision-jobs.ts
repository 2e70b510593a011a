/** Provisioning jobs: queued by one person, approved by another, run. */
import { hostname } from 'node:os';
import { decideAboutJob, type JobPlace, queueJob, runJob } from '../../../commands/super/provision-jobs.ts';
import { jobAfter, jobDetail, listJobs, tenantOfJob } from '../../../queries/super/provision-jobs.ts';
import { idParams } from '../../../shared/contract/common.ts';
import * as contract from '../../../shared/contract/super/provision-jobs.ts';
import { orNotFound } from '../../../shared/errors.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

const placeOf = async ({ reads }: Services, job: number): Promise<JobPlace> => ({
  tenant: orNotFound(await tenantOfJob(reads, job), 'Job'),
  job,
});

const list = defineCachedRoute({
  method: 'get',
  path: '/api/super/provision-jobs',
  summary: 'List provisioning jobs, newest first',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'all', prompts: 'none' },
  scope: 'deployment',
  query: contract.provisionJobsQuery,
  responses: { 200: { description: 'Jobs', schema: contract.provisionJobsResponse } },
  cache: { models: ['tenants'], scope: 'all', caller: [] },
  respond: async ({ query, services }) => ({ jobs: await listJobs(services.reads, query) }),
});

const create = defineRoute({
  method: 'post',
  path: '/api/super/provision-jobs',
  summary: 'Queue a provisioning job',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  body: contract.newProvisionJobBody,
  refuses: [404],
  responses: { 201: { description: 'The job', schema: contract.provisionJobResponse } },
  async respond({ body, services, command }) {
    const { id, executed } = await queueJob(services.commands, command, body);
    const place = { tenant: body.tenant_id, job: id };
    return { job: await jobAfter(services.records, place, executed) };
  },
});

const one = defineCachedRoute({
  method: 'get',
  path: '/api/super/provision-jobs/{id}',
  summary: 'A provisioning job, with its events',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'all', prompts: 'none' },
  scope: 'deployment',
  params: idParams,
  refuses: [404],
  responses: { 200: { description: 'The job', schema: contract.provisionJobResponse } },
  cache: { models: ['tenants'], scope: 'all', caller: [] },
  async respond({ params, services }) {
    return { job: orNotFound(await jobDetail(services.reads, params.id), 'Job') };
  },
});

const decide = defineRoute({
  method: 'post',
  path: '/api/super/provision-jobs/{id}',
  summary: 'Approve, reject or cancel a provisioning job',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  params: idParams,
  body: contract.jobDecisionBody,
  refuses: [404],
  responses: { 200: { description: 'The job', schema: contract.provisionJobResponse } },
  async respond({ params, body, services, command }) {
    const place = await placeOf(services, params.id);
    const executed = await decideAboutJob(services.commands, command, place, body);
    return { job: await jobAfter(services.records, place, executed) };
  },
});

const run = defineRoute({
  method: 'post',
  path: '/api/super/provision-jobs/{id}/run',
  summary: 'Run an approved provisioning job',
  description:
    'A dry run records the steps and executes nothing. A live run needs two people: the requester of the job cannot approve it, and the approver cannot run it. It fails with 400 `NO_PROVISIONER`, because Signalbox executes no commands.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  params: idParams,
  refuses: [404],
  responses: { 200: { description: 'The job after its run', schema: contract.provisionJobResponse } },
  async respond({ params, services, command }) {
    const place = await placeOf(services, params.id);
    const executed = await runJob(services.commands, command, place, hostname());
    return { job: await jobAfter(services.records, place, executed) };
  },
});

export const provisionJobRoutes: readonly Route[] = [list, create, one, decide, run];
