/** The log over HTTP, as it is stored. */
import { readPersonal } from '../../../commands/auth/people.ts';
import { type HistoryReads, historyEvent, indexUpToNow, listHistoryEvents } from '../../../queries/history/events.ts';
import * as contract from '../../../shared/contract/history/events.ts';
import { showPosition } from '../../http/consistency.ts';
import { type Call, defineRoute, type Route } from '../../http/route.ts';

type Reading = Pick<
  Call<object, { readonly open: boolean }, unknown>,
  'params' | 'query' | 'services' | 'command' | 'context'
>;

/** Reads the log. Personal fields are opened if the query asks for that, which is recorded (`readPersonal`). */
export async function readHistory<T>(
  { params, query, services, command, context }: Reading,
  read: (reads: HistoryReads) => Promise<T>,
): Promise<T> {
  const { logIndex, store, commands } = services;
  const { index, position } = await indexUpToNow(logIndex);
  showPosition(context, position);
  if (!query.open) return read({ index, store });
  const { open: _, ...given } = { ...params, ...query };
  const named = Object.entries(given).filter(([, value]) => value !== undefined);
  const filter = Object.fromEntries(named.map(([name, value]) => [name, String(value)]));
  return readPersonal(commands, command, store, filter, ({ reveal }) =>
    read({ index, store: { log: store.log, reveal } }),
  );
}

export const OPENED =
  '`open=1` makes the fields of people readable, and leaves an entry in the audit trail; secrets stay sealed.';

const list = defineRoute({
  method: 'get',
  path: '/api/history/events',
  noPast: 'the log does not change',
  summary: 'List events of the log, oldest first',
  mcp: { tool: 'list_events' },
  description: `For admins of the deployment: the log holds the events of all tenants. Events are as they are stored: personal fields and secrets are sealed, old versions are not upcast. ${OPENED}\n\n\`next_after\` is the \`after\` of the next page; filters can be combined.`,
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  shared: 'history',
  query: contract.historyEventsQuery,
  responses: { 200: { description: 'Events', schema: contract.historyEventsResponse } },
  respond: (call) => readHistory(call, (reads) => listHistoryEvents(reads, call.query)),
});

const one = defineRoute({
  method: 'get',
  path: '/api/history/events/{id}',
  noPast: 'the log does not change',
  summary: 'Get an event of the log',
  description: OPENED,
  mcp: { tool: 'get_event', resource: 'event://{id}' },
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  shared: 'history',
  params: contract.historyEventParams,
  query: contract.openQuery,
  refuses: [404],
  responses: { 200: { description: 'The event, as it is stored', schema: contract.historyEventSchema } },
  respond: async (call) =>
    (await readHistory(call, (reads) => historyEvent(reads, call.params.id, call.query.open))).event,
});

export const historyEventRoutes: readonly Route[] = [list, one];
