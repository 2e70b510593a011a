/** Changes of tasks: of one task, and of the status of many. */
import { setStatuses, updateTask } from '../../../commands/tasks/changes.ts';
import { idParams } from '../../../shared/contract/common.ts';
import {
  bulkStatusBody,
  bulkStatusResponse,
  updatedTaskResponse,
  updateTaskBody,
} from '../../../shared/contract/tasks/tasks.ts';
import { seconds } from '../../../shared/time.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { BOUND, HELD, lookupsOf, oneShownTo } from './tasks.ts';

const GATE = 'A task is done only when the newest quality review by `aegis` is an approval.';

const putMany = defineRoute({
  method: 'put',
  path: '/api/tasks',
  summary: 'Set the status of many tasks',
  description: `Approvals are checked before the first task changes. Each task is then changed by itself, so an approval that is withdrawn at that moment may refuse one task after others have changed; the error says how many have. Tasks that do not exist are skipped. The key of an agent changes only tasks that are assigned to that agent. ${HELD} ${GATE}`,
  access: 'operator',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  body: bulkStatusBody,
  refuses: [409],
  responses: { 200: { description: 'Changed', schema: bulkStatusResponse } },
  async respond({ body, identity, services, command }) {
    const updated = await setStatuses(services.commands, command, body.tasks, seconds(services.now()), identity);
    return { success: true, updated };
  },
});

const putOne = defineRoute({
  method: 'put',
  path: '/api/tasks/{id}',
  summary: 'Change a task',
  mcp: [
    { tool: 'update_task', idempotent: true },
    {
      tool: 'ask_for_review',
      summary: 'Ask for a review of a finished task',
      idempotent: true,
      sets: { status: 'quality_review' },
      takes: ['outcome', 'resolution', 'actual_hours'],
    },
  ],
  description: `Omitted fields stay unchanged. ${GATE} ${BOUND} ${HELD}`,
  access: 'operator',
  rules: { agentKeys: 'tasks', strict: 'allowed', past: 'none', prompts: 'screened' },
  params: idParams,
  body: updateTaskBody,
  refuses: [404, 409],
  responses: { 200: { description: 'The task as it is now', schema: updatedTaskResponse } },
  async respond({ params, body, identity, services, command }) {
    const { created_by: _, ...fields } = body;
    const change = { fields, by: identity.username, now: seconds(services.now()) };
    const { task, unchanged } = await updateTask(
      services.commands,
      command,
      lookupsOf(services),
      params.id,
      change,
      identity,
    );
    return { task: await oneShownTo(services, identity, task), ...(unchanged && { unchanged }) };
  },
});

export const taskChangeRoutes: readonly Route[] = [putMany, putOne];
