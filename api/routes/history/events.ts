/** The log over HTTP, as it is stored. */
import { historyEvent, listHistoryEvents } from '../../../queries/history/events.ts';
import * as contract from '../../../shared/contract/history/events.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

export const historyReadsOf = ({ logIndex, store }: Services) => ({ index: logIndex, store });

const list = defineRoute({
  method: 'get',
  path: '/api/history/events',
  noPast: 'the log does not change',
  summary: 'List events of the log, oldest first',
  mcp: { tool: 'list_events' },
  description:
    'For admins of the deployment: the log holds the events of all tenants. Events are as they are stored: personal fields and secrets are sealed, old versions are not upcast. `open=1` makes personal fields readable.\n\n`next_after` is the `after` of the next page; filters can be combined.',
  access: 'admin',
  scope: 'deployment',
  shared: 'history',
  query: contract.historyEventsQuery,
  responses: { 200: { description: 'Events', schema: contract.historyEventsResponse } },
  respond: ({ query, services }) => listHistoryEvents(historyReadsOf(services), query),
});

const one = defineRoute({
  method: 'get',
  path: '/api/history/events/{id}',
  noPast: 'the log does not change',
  summary: 'Get an event of the log',
  mcp: { tool: 'get_event', resource: 'event://{id}' },
  access: 'admin',
  scope: 'deployment',
  shared: 'history',
  params: contract.historyEventParams,
  query: contract.openQuery,
  refuses: [404],
  responses: { 200: { description: 'The event, as it is stored', schema: contract.historyEventSchema } },
  respond: async ({ params, query, services }) =>
    (await historyEvent(historyReadsOf(services), params.id, query.open)).event,
});

export const historyEventRoutes: readonly Route[] = [list, one];
