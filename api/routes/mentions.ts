/** Mentions: suggestions for an editor after an `@`. */
import { listMentions, MENTION_MODELS } from '../../queries/mentions.ts';
import { mentionsQuery, mentionsResponse } from '../../shared/contract/mentions.ts';
import { defineCachedRoute } from '../http/route.ts';

export const mentionRoute = defineCachedRoute({
  method: 'get',
  path: '/api/mentions',
  summary: 'Who can be mentioned: users by username, then agents by name',
  description:
    'The handle of an agent is its name in lower case, or the same with a hyphen for each blank. If several targets share a handle, it belongs to the first of them.',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: mentionsQuery,
  responses: { 200: { description: 'Handles that match', schema: mentionsResponse } },
  cache: { models: MENTION_MODELS },
  async respond({ query, identity, services }) {
    const mentions = await listMentions(services.reads, identity.workspace, query);
    return { mentions, total: mentions.length, q: query.q };
  },
});
