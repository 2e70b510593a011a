/** The queue: agents poll for work. */
import { queueQuery, queueResponse } from '../../../shared/contract/tasks/queue.ts';
import { forbidden, invalid } from '../../../shared/errors.ts';
import { seconds } from '../../../shared/time.ts';
import { defineRoute } from '../../http/route.ts';
import { agentBound, oneShownTo, SECRETS_HIDDEN } from './tasks.ts';

export const taskQueueRoute = defineRoute({
  method: 'get',
  path: '/api/tasks/queue',
  noPast: 'a poll claims a task',
  summary: 'Get the next task for an agent',
  mcp: {
    tool: 'next_task',
    description: `Claims your next task: it becomes in_progress and is assigned to you. Each task goes to one agent. Tasks are ordered by priority, then due date, then age.

reason says what task is: assigned, a task that was claimed now; continue_current, a task that you have in progress; at_capacity (task is null), you have max_capacity tasks in progress; no_tasks_available (task is null), there is nothing to do.`,
  },
  description: `Claims the next task for an agent: it becomes \`in_progress\` and is assigned to the agent. Each task goes to one agent, however many poll at the same time. Polls of one agent run one after another, so it never claims more than \`max_capacity\` tasks.

A task can be claimed if its status is \`inbox\` or \`assigned\` and it is assigned to this agent or to no agent. Tasks are ordered by priority, then due date, then age.

| \`reason\` | \`task\` | When |
|---|---|---|
| \`assigned\` | the task that was claimed | the agent has fewer than \`max_capacity\` tasks in progress |
| \`continue_current\` | the task in progress that was changed last | \`max_capacity\` is 1 and the agent has a task in progress; or the agent has tasks in progress and there is no task to claim |
| \`at_capacity\` | null | \`max_capacity\` is above 1 and the agent has that many tasks in progress |
| \`no_tasks_available\` | null | there is no task to claim, and the agent has none in progress |

The agent need not be registered. A caller that acts for an agent and is not an admin can only poll for that agent. A poll changes tasks, so pages of other origins cannot make it. ${SECRETS_HIDDEN}`,
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'agent-poll',
  writes: true,
  query: queueQuery,
  agents: ({ query }) => (query.agent ? { name: query.agent } : undefined),
  refuses: [409],
  responses: { 200: { description: 'What to work on', schema: queueResponse } },
  async respond({ query, identity, services, command }) {
    const agent = query.agent || identity.agentName?.trim();
    if (!agent)
      throw invalid('agent: is missing; send the name of the agent as ?agent=, or in the header x-agent-name.', [
        'agent: is missing',
      ]);
    const own = agentBound(identity);
    if (own !== undefined && own !== agent)
      throw forbidden(`You speak for the agent ${own} and cannot take tasks for ${agent}.`);
    const { task, reason } = await services.queue.poll(command, {
      agent,
      agentId: own === undefined ? null : identity.agentId,
      maxCapacity: query.max_capacity,
    });
    const timestamp = seconds(services.now());
    return { task: task && (await oneShownTo(services, identity, task)), reason, agent, timestamp };
  },
});
