/** Messages to all subscribers of a task. */
import { refuseInjection } from '../../../commands/agents/injection.ts';
import { broadcast } from '../../../commands/tasks/broadcasts.ts';
import { requireSeen } from '../../../queries/tasks/visibility.ts';
import { idParams } from '../../../shared/contract/common.ts';
import { broadcastBody, broadcastResponse } from '../../../shared/contract/tasks/broadcasts.ts';
import { authorOf, taskViewOf } from '../../../shared/identity.ts';
import { defineRoute } from '../../http/route.ts';

export const taskBroadcastRoute = defineRoute({
  method: 'post',
  path: '/api/tasks/{id}/broadcast',
  summary: 'Send a message to the agents that follow a task',
  description:
    'Agents that have a session get a notification; the others are skipped, and users and the author are not among them. The whole message is in the activity. A text that tries to take over agents is refused. A caller that speaks for an agent and is no admin may do so for the tasks that it sees.',
  access: 'operator',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'refused' },
  limit: 'none',
  params: idParams,
  body: broadcastBody,
  refuses: [404, 422],
  responses: { 200: { description: 'Sent', schema: broadcastResponse } },
  async respond({ params, body, identity, services, command }) {
    await requireSeen(services.reads, taskViewOf(identity), params.id);
    refuseInjection('The message', body.message);
    const by = { author: authorOf(identity), message: body.message };
    const { sent, skipped, deliveredTo } = await broadcast(services.commands, command, services.reads, params.id, by);
    return { sent, skipped, success: true, delivered_to: [...deliveredTo] };
  },
});
