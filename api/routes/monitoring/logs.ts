/** Log lines: query them, add one. */
import * as contract from '../../../shared/contract/monitoring/logs.ts';
import type { LogEntry } from '../../../shared/ports/monitoring/logs.ts';
import { defineRoute, type Route } from '../../http/route.ts';

/** @param whole includes the data, which reveals details about the infrastructure and all workspaces */
const responseOf = (
  { id, at, level, source, session, message, data }: LogEntry,
  whole: boolean,
): contract.LogEntryResponse => ({
  id,
  timestamp: at,
  level,
  source,
  ...(session !== null && { session }),
  message,
  data: whole ? data : null,
});

const list = defineRoute({
  method: 'get',
  path: '/api/logs',
  noPast: 'lines of the log have times of their own: use since',
  summary: 'Lines of the log, newest first',
  description:
    'What the service itself has logged at warn and above, in the default workspace, and what clients of the workspace have added. Lines are kept for 30 days (`MC_RETAIN_LOGS_DAYS`), and about the newest 10,000 or 8 MB of a workspace.',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'refused', past: 'none', prompts: 'none' },
  shared: 'logs',
  limit: 'read',
  query: contract.logsQuery,
  responses: { 200: { description: 'Lines, or the names of their sources', schema: contract.logsResponse } },
  async respond({ query, identity, services }) {
    const { logs } = services;
    const { action = 'recent', since = 0, limit, source } = query;
    if (action === 'sources') return { sources: await logs.sources(identity.workspace) };
    const found =
      action === 'tail'
        ? await logs.tail(identity.workspace, { since, source, limit })
        : await logs.recent(identity.workspace, query);
    return { logs: found.map((entry) => responseOf(entry, identity.role === 'admin')) };
  },
});

const add = defineRoute({
  method: 'post',
  path: '/api/logs',
  summary: 'Add a line to the log of the workspace',
  access: 'operator',
  rules: { agentKeys: 'any', strict: 'refused', past: 'none', prompts: 'none' },
  shared: 'logs',
  body: contract.logBody,
  responses: { 200: { description: 'Stored', schema: contract.logResponse } },
  async respond({ body, identity, services }) {
    const { message, level = 'info', session = null } = body;
    // An agent cannot write under the name of the service or of another agent.
    const source = identity.kind === 'agent-key' ? identity.username : (body.source ?? contract.OWN_SOURCE);
    const line = { at: services.now(), level, source, session, message, data: null };
    const entry = await services.logs.add(identity.workspace, line);
    return { success: true, entry: responseOf(entry, true) };
  },
});

export const logRoutes: readonly Route[] = [list, add];
