/** The scheduled tasks of the service: list, schedule and last result; and run one now. */
import * as contract from '../../../shared/contract/admin/scheduler.ts';
import { invalidField } from '../../../shared/errors.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const list = defineRoute({
  method: 'get',
  path: '/api/scheduler',
  noPast: 'this is the state of the processes',
  summary: 'List scheduled tasks',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  responses: { 200: { description: 'Every scheduled task', schema: contract.schedulerResponse } },
  respond: async ({ services }) => ({ tasks: [...(await services.scheduler.list())] }),
});

const run = defineRoute({
  method: 'post',
  path: '/api/scheduler',
  summary: 'Run a scheduled task now',
  description:
    'A worker runs it, even if it is switched off; its schedule and its last result do not change. The response waits up to 10 seconds for it.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  limit: 'none',
  scope: 'deployment',
  body: contract.runTaskBody,
  refuses: [503],
  responses: {
    200: { description: 'It has run, or is about to', schema: contract.runTaskResponse },
    500: { description: 'It has failed', schema: contract.taskFailedResponse },
  },
  async handle({ body, services }) {
    const { ids } = services.scheduler;
    const id = body.task_id ?? body.task;
    if (id === undefined || !ids.includes(id)) throw invalidField('task_id', `must be one of ${ids.join(', ')}`);
    const { ok, message } = await services.scheduler.runNow(id);
    return ok ? { body: { ok, message } } : { status: 500, body: { ok, message, error: message } };
  },
});

export const schedulerRoutes: readonly Route[] = [list, run];
