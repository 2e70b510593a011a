/** Provisioning jobs: queued by one person, approved by another, run. */
import { hostname } from 'node:os';
import { decideAboutJob, type JobPlace, queueJob, runJob } from '../../../commands/super/provision-jobs.ts';
import { jobAfter, jobDetail, listJobs, tenantOfJob } from '../../../queries/super/provision-jobs.ts';
import { idParams } from '../../../shared/contract/common.ts';
import {
  jobDecisionBody,
  newProvisionJobBody,
  provisionJobAnswer,
  provisionJobsAnswer,
  provisionJobsQuery,
} from '../../../shared/contract/super/provision-jobs.ts';
import { notFound } from '../../../shared/errors.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

async function placeOf({ reads }: Services, job: number): Promise<JobPlace> {
  const tenant = await tenantOfJob(reads, job);
  if (tenant === undefined) throw notFound('Job');
  return { tenant, job };
}

const list = defineCachedRoute({
  method: 'get',
  path: '/api/super/provision-jobs',
  tag: 'Super Admin',
  summary: 'List provisioning jobs, newest first',
  access: 'admin',
  scope: 'deployment',
  query: provisionJobsQuery,
  responses: { 200: { description: 'Jobs', schema: provisionJobsAnswer } },
  cache: { models: ['tenants'], scope: 'all', caller: [] },
  respond: async ({ query, services }) => ({ body: { jobs: await listJobs(services.reads, query) } }),
});

const create = defineRoute({
  method: 'post',
  path: '/api/super/provision-jobs',
  tag: 'Super Admin',
  summary: 'Queue a provisioning job',
  access: 'admin',
  scope: 'deployment',
  limit: 'mutation',
  body: newProvisionJobBody,
  refuses: [404],
  responses: { 201: { description: 'The job', schema: provisionJobAnswer } },
  async handle({ body, services, command }) {
    const { id, executed } = await queueJob(services.commands, command, body);
    const place = { tenant: body.tenant_id, job: id };
    return { status: 201, body: { job: await jobAfter(services.records, place, executed) } };
  },
});

const one = defineCachedRoute({
  method: 'get',
  path: '/api/super/provision-jobs/{id}',
  tag: 'Super Admin',
  summary: 'A provisioning job, with its events',
  access: 'admin',
  scope: 'deployment',
  params: idParams,
  refuses: [404],
  responses: { 200: { description: 'The job', schema: provisionJobAnswer } },
  cache: { models: ['tenants'], scope: 'all', caller: [] },
  async respond({ params, services }) {
    const job = await jobDetail(services.reads, params.id);
    if (!job) throw notFound('Job');
    return { body: { job } };
  },
});

const decide = defineRoute({
  method: 'post',
  path: '/api/super/provision-jobs/{id}',
  tag: 'Super Admin',
  summary: 'Approve, reject or cancel a provisioning job',
  access: 'admin',
  scope: 'deployment',
  limit: 'mutation',
  params: idParams,
  body: jobDecisionBody,
  refuses: [404],
  responses: { 200: { description: 'The job', schema: provisionJobAnswer } },
  async handle({ params, body, services, command }) {
    const place = await placeOf(services, params.id);
    const executed = await decideAboutJob(services.commands, command, place, body);
    return { body: { job: await jobAfter(services.records, place, executed) } };
  },
});

const run = defineRoute({
  method: 'post',
  path: '/api/super/provision-jobs/{id}/run',
  tag: 'Super Admin',
  summary: 'Run an approved provisioning job',
  description:
    'A dry run records the steps and executes nothing. A live run needs two people: the requester of the job cannot approve it, and the approver cannot run it. It fails with 400 `NO_PROVISIONER`, because Signalbox executes no commands.',
  access: 'admin',
  scope: 'deployment',
  limit: 'mutation',
  params: idParams,
  refuses: [404],
  responses: { 200: { description: 'The job after its run', schema: provisionJobAnswer } },
  async handle({ params, services, command }) {
    const place = await placeOf(services, params.id);
    const executed = await runJob(services.commands, command, place, hostname());
    return { body: { job: await jobAfter(services.records, place, executed) } };
  },
});

export const provisionJobRoutes: readonly Route[] = [list, create, one, decide, run];
