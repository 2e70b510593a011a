/** Token usage: how many, by whom, for what, and at what cost. */
import { z } from 'zod';
import { agentCosts, tokensByAgent } from '../../../queries/tokens/agent-costs.ts';
import { allTokens, evidentTokens, listTokens } from '../../../queries/tokens/reports.ts';
import { tokenStats, tokenTrends } from '../../../queries/tokens/stats.ts';
import { taskCosts } from '../../../queries/tokens/task-costs.ts';
import { listedOf } from '../../../shared/contract/evidence.ts';
import * as contract from '../../../shared/contract/tokens/usage.ts';
import { AppError, invalid } from '../../../shared/errors.ts';
import { TASK_VIEW, taskViewOf, type Viewer } from '../../../shared/identity.ts';
import type { RequestContext } from '../../http/context.ts';
import { defineCachedRoute, defineRoute, HANDLED, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';
import { exportName, sendExport } from './export.ts';

/** The response of an action; its route sends an export. @throws AppError 400 */
async function reportOf({ reads, now: clock }: Services, viewer: Viewer, query: contract.TokensQuery) {
  const { workspace } = viewer;
  const { action, timeframe } = query;
  const most = listedOf(query);
  const now = clock();
  switch (action) {
    case 'list':
      return listTokens(reads, workspace, timeframe, now, most, query.before);
    case 'stats':
      return tokenStats(reads, workspace, timeframe, now, most);
    case 'agent-costs':
      return agentCosts(reads, workspace, timeframe, now, most);
    case 'task-costs':
      return taskCosts(reads, taskViewOf(viewer), timeframe, now, most);
    case 'trends':
      return tokenTrends(reads, workspace, timeframe, now, most);
    default:
      throw new AppError(400, `action: must be one of ${contract.TOKEN_ACTIONS.join(', ')}`, { body: { action } });
  }
}

/** Sends an export. @throws AppError 400 */
async function exportReports(
  { reads, now: clock }: Services,
  { workspace }: Viewer,
  query: contract.TokensQuery,
  context: RequestContext,
): Promise<void> {
  const { timeframe, format, bom } = query;
  const most = listedOf(query);
  if (most !== undefined && format === 'csv')
    throw invalid('evidence: CSV has only reports, no numbers derived from them; use format=json, or leave it out');
  const now = clock();
  const file = { name: exportName(timeframe, format, now), format, bom: bom === '1' };
  if (most === undefined) {
    await sendExport(context, reads, file, allTokens(reads, workspace, timeframe, now));
    return;
  }
  const { pages, evidence } = await evidentTokens(reads, workspace, timeframe, now, most);
  await sendExport(context, reads, file, pages, evidence);
}

const usage = defineCachedRoute({
  method: 'get',
  path: '/api/tokens',
  summary: 'Get reported tokens and their costs: reports, sums, trends or an export',
  mcp: { tool: 'get_costs' },
  description:
    'Sums name at most 1,000 agents, models, sessions and tasks, those with the most tokens or the highest costs; totals include all. Time lines have at most 366 days. `evidence=1` adds the events of the log that each number was derived from. An export has all reports of the timeframe, as JSON or CSV; CSV has no sums, so `evidence=1` is refused with 400.',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.tokensQuery,
  responses: {
    200: {
      description: 'What the action gives; an export with format=csv is text/csv',
      schema: z.union([
        contract.tokenListResponse,
        contract.tokenExportResponse,
        contract.tokenStatsResponse,
        contract.taskCostsResponse,
        contract.agentCostsResponse,
        contract.tokenTrendsResponse,
      ]),
    },
  },
  cache: {
    models: ['tokens', 'agents', 'tasks', 'projects'],
    caller: TASK_VIEW,
    // Evidence names the moment of the response.
    unless: ({ action, timeframe, evidence }) =>
      action === 'trends' ||
      action === 'export' ||
      evidence !== undefined ||
      Object.hasOwn(contract.TIMEFRAMES, timeframe),
  },
  respond: ({ query, identity, services }) => reportOf(services, identity, query),
  async handle({ query, identity, services, context }) {
    if (query.action !== 'export') return { body: await reportOf(services, identity, query) };
    await exportReports(services, identity, query, context);
    return HANDLED;
  },
});

const byAgent = defineRoute({
  method: 'get',
  path: '/api/tokens/by-agent',
  summary: 'Get reported tokens and their costs by agent and model',
  mcp: { tool: 'get_costs_by_agent' },
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.byAgentQuery,
  responses: { 200: { description: 'Agents, those with the most tokens first', schema: contract.byAgentResponse } },
  respond: ({ query, identity, services }) =>
    tokensByAgent(services.reads, identity.workspace, query.days, services.now(), listedOf(query)),
});

export const tokenUsageRoutes: readonly Route[] = [usage, byAgent];
