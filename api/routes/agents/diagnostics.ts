/** Agent health report. */

import { findAgent } from '../../../queries/agents/agents.ts';
import { DIAGNOSTICS_MODELS, diagnosticsOf } from '../../../queries/agents/diagnostics.ts';
import { agentParams } from '../../../shared/contract/agents/agents.ts';
import * as contract from '../../../shared/contract/agents/diagnostics.ts';
import { sectionsOf, windowOf } from '../../../shared/contract/agents/scope.ts';
import { listedOf } from '../../../shared/contract/evidence.ts';
import { orNotFound } from '../../../shared/errors.ts';
import { taskViewOf } from '../../../shared/identity.ts';
import { defineCachedRoute } from '../../http/route.ts';
import { READER, requireReport } from './scope.ts';

export const agentDiagnosticsRoute = defineCachedRoute({
  method: 'get',
  path: '/api/agents/{id}/diagnostics',
  summary: 'Diagnostics of an agent: tasks, errors, activity, status over time, trends, tokens',
  mcp: { tool: 'get_diagnostics' },
  description:
    'For the agent itself: a caller with its key, its name in `x-agent-name`, or its name as username. Admins read those of any agent with `privileged=1`; with `section=status` alone, every caller does, without it. Errors are failures with a reason: of tasks, reviews, and the agent’s own status.\n\n`evidence=1` adds, for each number, the events of the log that it was derived from.',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: agentParams,
  query: contract.diagnosticsQuery,
  refuses: [403, 404],
  responses: { 200: { description: 'The sections that were asked for', schema: contract.diagnosticsResponse } },
  cache: { models: ['agents', ...DIAGNOSTICS_MODELS], caller: READER, clock: 'second' },
  async respond({ params, query, identity, services }) {
    // Activities show every caller when the status changed.
    const isPublic = query.section?.trim() === 'status';
    const agent = isPublic
      ? orNotFound(await findAgent(services.reads, identity.workspace, params.id), 'Agent')
      : (await requireReport(services, identity, params.id, query, 'name before username')).agent;
    const window = windowOf(query.hours, services.now());
    const sections = sectionsOf(query.section?.trim(), contract.DIAGNOSTICS_SECTIONS);
    const most = listedOf(query);
    return diagnosticsOf(services.reads, taskViewOf(identity), agent, window, sections, most);
  },
});
