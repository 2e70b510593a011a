/** The queue: agents poll for work. */
import { queueAnswer, queueQuery } from '../../../shared/contract/tasks/queue.ts';
import { forbidden, invalid } from '../../../shared/errors.ts';
import { seconds } from '../../../shared/time.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { agentBound, oneShownTo, SECRETS_HIDDEN } from './tasks.ts';

const poll = defineRoute({
  method: 'get',
  path: '/api/tasks/queue',
  noPast: 'a poll claims a task',
  tag: 'Tasks',
  summary: 'Get the next task for an agent',
  description: `Claims a task: it is in progress afterwards, and assigned to the agent. However many agents ask at the same time, a task goes to one of them and stays with it. Polls of one agent take turns, so it never has more than \`max_capacity\` by them. Tasks come from those that are \`assigned\` to the agent or to nobody, or in the \`inbox\`: by priority, then by due date, then by age.

| \`reason\` | \`task\` | when |
|---|---|---|
| \`assigned\` | the one that was claimed | the agent has fewer than \`max_capacity\` tasks in progress |
| \`continue_current\` | the one that was changed last | \`max_capacity\` is 1 and the agent has a task in progress; or it has one, and nothing waits for it |
| \`at_capacity\` | null | \`max_capacity\` is above 1 and so many tasks are in progress |
| \`no_tasks_available\` | null | nothing waits, and the agent has nothing in progress |

Whether there is such an agent is not checked. A caller that speaks for an agent and is no admin may only ask for that agent. Because it changes something, pages of other origins cannot make this call. ${SECRETS_HIDDEN}`,
  access: 'operator',
  limit: 'agent-poll',
  writes: true,
  query: queueQuery,
  agents: ({ query }) => (query.agent ? { name: query.agent } : undefined),
  refuses: [409],
  responses: { 200: { description: 'What to work on', schema: queueAnswer } },
  async handle({ query, identity, services, command }) {
    const agent = query.agent || identity.agentName?.trim();
    if (!agent)
      throw invalid('agent: is missing; send the name of the agent as ?agent=, or in the header x-agent-name.', [
        'agent: is missing',
      ]);
    const own = agentBound(identity);
    if (own !== undefined && own !== agent)
      throw forbidden(`You speak for the agent ${own} and cannot take tasks for ${agent}.`);
    const { task, reason } = await services.queue.poll(command, { agent, maxCapacity: query.max_capacity });
    const timestamp = seconds(services.now());
    return { body: { task: task && (await oneShownTo(services, identity, task)), reason, agent, timestamp } };
  },
});

export const taskQueueRoutes: readonly Route[] = [poll];
