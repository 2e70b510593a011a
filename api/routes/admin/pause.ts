/** The pause after a restore. */
import { resumeDeployment } from '../../../commands/admin/pause.ts';
import { pauseResponse } from '../../../shared/contract/admin/pause.ts';
import { successResponse } from '../../../shared/contract/common.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const read = defineRoute({
  method: 'get',
  path: '/api/resume',
  noPast: 'the pause is not in the log',
  summary: 'Whether this deployment is paused after a restore',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  responses: { 200: { description: 'The pause', schema: pauseResponse } },
  async respond({ services }) {
    const since = await services.pause.since();
    return { paused: since !== null, since };
  },
});

const resume = defineRoute({
  method: 'post',
  path: '/api/resume',
  summary: 'End the pause after a restore',
  description:
    'A restored deployment begins paused: webhooks, the agent runner, GitHub, gateways and the release feed are not called (503 `PAUSED`), and no schedule and no job runs. This call ends the pause in all processes, within a second or two: jobs and messages of webhooks that have waited since the restore are then sent.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  limit: 'backup',
  refuses: [409],
  responses: { 200: { description: 'Resumed', schema: successResponse } },
  async respond({ services, command }) {
    await resumeDeployment(services.commands, command, services.pause);
    return { success: true };
  },
});

export const pauseRoutes: readonly Route[] = [read, resume];
