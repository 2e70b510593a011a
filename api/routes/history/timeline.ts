/** The log over time. */
import { indexUpToNow } from '../../../queries/history/events.ts';
import { logTimeline } from '../../../queries/history/timeline.ts';
import { timelineQuery, timelineResponse } from '../../../shared/contract/history/timeline.ts';
import { showPosition } from '../../http/consistency.ts';
import { defineRoute } from '../../http/route.ts';

export const historyTimelineRoute = defineRoute({
  method: 'get',
  path: '/api/history/timeline',
  noPast: 'the log does not change',
  summary: 'Count the events of the log over time',
  description:
    'For admins of the deployment: the log holds the events of all tenants. The span is divided into parts of equal length. `position` is a value for `as_of`: it shows everything as of the end of the part.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  shared: 'history',
  query: timelineQuery,
  responses: { 200: { description: 'Parts of the span', schema: timelineResponse } },
  async respond({ query, services, context }) {
    const { index, position } = await indexUpToNow(services.logIndex);
    showPosition(context, position);
    return logTimeline(index, query, services.now());
  },
});
