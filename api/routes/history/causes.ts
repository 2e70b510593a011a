/** Why something happened, and what followed from it. */
import { historyCauses } from '../../../queries/history/causes.ts';
import { causesParams, causesResponse } from '../../../shared/contract/history/causes.ts';
import { openQuery } from '../../../shared/contract/history/events.ts';
import { defineRoute } from '../../http/route.ts';
import { OPENED, readHistory } from './events.ts';

export const historyCauseRoute = defineRoute({
  method: 'get',
  path: '/api/history/causes/{id}',
  noPast: 'the log does not change',
  summary: 'Get the causes and effects of an event',
  mcp: { tool: 'get_causes' },
  description: `The chain of events that led to it, up to the request or the schedule that began it: who it was, with which credential, from which address. Then the tree of events that followed from it. The id may also be that of a webhook message (\`webhook-id\`): it is sent because of an event. ${OPENED}`,
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  shared: 'history',
  params: causesParams,
  query: openQuery,
  refuses: [404],
  responses: { 200: { description: 'Causes and effects', schema: causesResponse } },
  respond: (call) =>
    readHistory(call, (reads) => historyCauses(reads, call.params.id, call.query.open, call.services.pageBytes)),
});
