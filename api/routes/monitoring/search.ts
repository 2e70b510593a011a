/** Search. */
import { searchRecords } from '../../../queries/monitoring/search.ts';
import { searchQuery, searchResponse } from '../../../shared/contract/monitoring/search.ts';
import { taskViewOf } from '../../../shared/identity.ts';
import { defineRoute } from '../../http/route.ts';
import { SEEN } from '../tasks/tasks.ts';

export const searchRoute = defineRoute({
  method: 'get',
  path: '/api/search',
  summary: 'Search tasks, agents, pipelines, activities, messages, webhooks and, for admins, the audit trail',
  mcp: { tool: 'search' },
  description: `Finds texts that contain \`q\`: the newest of each type, best matches first. Webhooks are found by their names; only admins find them by their URLs, and see these. A text without three letters or digits in a row is searched for only in the newest 10,000 of each type. ${SEEN}`,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  limit: 'heavy',
  query: searchQuery,
  responses: { 200: { description: 'What was found', schema: searchResponse } },
  respond: ({ query, identity, services: { reads, displayNames } }) =>
    searchRecords(reads, displayNames, taskViewOf(identity), query, identity.role === 'admin', identity.seesSecrets),
});
