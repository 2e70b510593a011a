/** What differs between two moments of the log. */
import { diffBetween } from '../../../queries/history/diff.ts';
import { diffQuery, diffResponse } from '../../../shared/contract/history/diff.ts';
import { invalid } from '../../../shared/errors.ts';
import { momentOf, startOf } from '../../http/as-of.ts';
import { showPosition } from '../../http/consistency.ts';
import { defineRoute } from '../../http/route.ts';

export const historyDiffRoute = defineRoute({
  method: 'get',
  path: '/api/history/diff',
  noPast: 'from and to say which moments are compared',
  summary: 'Compare the records of the workspace at two positions',
  mcp: { tool: 'compare_moments' },
  description:
    'Records that were added, removed or changed after `from`, up to `to`, with the fields that differ and the events that changed them. Fields are named as in the read model. A record that was changed and changed back is left out.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  query: diffQuery,
  refuses: [409],
  responses: { 200: { description: 'What differs', schema: diffResponse } },
  async respond({ query, identity, services, context }) {
    const from = await startOf(services, query.from);
    const { position: to } = await momentOf(services, query.to, 'to');
    if (from > to) throw invalid('from: must not be after to');
    showPosition(context, to);
    const range = { reads: services.reads, workspace: identity.workspace, from, to };
    return diffBetween(services.logIndex, range, query, services.pageBytes);
  },
});
