/** The scheduled tasks of the service: list, schedule and last result; and run one now. */
import {
  runTaskAnswer,
  runTaskBody,
  schedulerAnswer,
  taskFailedAnswer,
} from '../../../shared/contract/admin/scheduler.ts';
import { invalid } from '../../../shared/errors.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const list = defineRoute({
  method: 'get',
  path: '/api/scheduler',
  noPast: 'this is the state of the processes',
  tag: 'Admin',
  summary: 'List scheduled tasks',
  access: 'admin',
  shared: 'scheduler',
  scope: 'deployment',
  responses: { 200: { description: 'Every scheduled task', schema: schedulerAnswer } },
  handle: async ({ services }) => ({ body: { tasks: [...(await services.scheduler.list())] } }),
});

const run = defineRoute({
  method: 'post',
  path: '/api/scheduler',
  tag: 'Admin',
  summary: 'Run a scheduled task now',
  description:
    'A worker runs it, even if it is switched off; its schedule and its last result do not change. The response waits up to 10 seconds for it.',
  access: 'admin',
  shared: 'scheduler',
  scope: 'deployment',
  body: runTaskBody,
  refuses: [503],
  responses: {
    200: { description: 'It has run, or is about to', schema: runTaskAnswer },
    500: { description: 'It has failed', schema: taskFailedAnswer },
  },
  async handle({ body, services }) {
    const { ids } = services.scheduler;
    const id = body.task_id ?? body.task;
    if (id === undefined || !ids.includes(id)) {
      const finding = `task_id: must be one of ${ids.join(', ')}`;
      throw invalid(finding, [finding]);
    }
    const { ok, message } = await services.scheduler.runNow(id);
    return ok ? { body: { ok, message } } : { status: 500, body: { ok, message, error: message } };
  },
});

export const schedulerRoutes: readonly Route[] = [list, run];
