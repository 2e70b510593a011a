/** How many tokens were used, by whom, for what, and what they cost. */
import { z } from 'zod';
import { agentCosts, tokensByAgent } from '../../../queries/tokens/agent-costs.ts';
import { allTokens, listTokens } from '../../../queries/tokens/reports.ts';
import { tokenStats } from '../../../queries/tokens/stats.ts';
import { taskCosts } from '../../../queries/tokens/task-costs.ts';
import { tokenTrends } from '../../../queries/tokens/trends.ts';
import { listedOf } from '../../../shared/contract/evidence.ts';
import {
  agentCostsAnswer,
  byAgentAnswer,
  byAgentQuery,
  EVIDENT_ACTIONS,
  TIMEFRAMES,
  TOKEN_ACTIONS,
  type TokensQuery,
  taskCostsAnswer,
  tokenExportAnswer,
  tokenListAnswer,
  tokenStatsAnswer,
  tokensQuery,
  tokenTrendsAnswer,
} from '../../../shared/contract/tokens/usage.ts';
import { AppError, invalid } from '../../../shared/errors.ts';
import { TASK_VIEW, taskViewOf, type Viewer } from '../../../shared/identity.ts';
import { defineCachedRoute, defineRoute, HANDLED, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';
import { exportName, sendExport } from './export.ts';

/** How many positions evidence lists; undefined: none. @throws AppError 400 */
function evidentFor(query: TokensQuery): number | undefined {
  const most = listedOf(query);
  if (most !== undefined && !EVIDENT_ACTIONS.includes(query.action))
    throw invalid(`evidence: is available for ${EVIDENT_ACTIONS.join(', ')}; leave it out for other actions`);
  return most;
}

/** What an action gives; an export is sent by its route. @throws AppError 400 */
async function reportOf({ reads, now: clock }: Services, viewer: Viewer, query: TokensQuery) {
  const { workspace } = viewer;
  const { action, timeframe } = query;
  const most = evidentFor(query);
  const now = clock();
  switch (action) {
    case 'list':
      return listTokens(reads, workspace, timeframe, now, most);
    case 'stats':
      return tokenStats(reads, workspace, timeframe, now, most);
    case 'agent-costs':
      return agentCosts(reads, workspace, timeframe, now);
    case 'task-costs':
      return taskCosts(reads, taskViewOf(viewer), timeframe, now);
    case 'trends':
      return tokenTrends(reads, workspace, timeframe, now, most);
    default:
      throw new AppError(400, `action: must be one of ${TOKEN_ACTIONS.join(', ')}`, { body: { action } });
  }
}

const usage = defineCachedRoute({
  method: 'get',
  path: '/api/tokens',
  tag: 'Tokens',
  summary: 'Get reported tokens and their costs: reports, sums, trends or an export',
  description:
    'Sums name at most 1,000 agents, models, sessions and tasks, those with the most tokens or the highest costs; totals include all. Time lines have at most 366 days. `evidence=1` adds, for `list`, `stats` and `trends`, the events of the log that each number was derived from. An export has all reports of the timeframe, as JSON or CSV.',
  access: 'viewer',
  query: tokensQuery,
  responses: {
    200: {
      description: 'What the action gives; an export with format=csv is text/csv',
      schema: z.union([
        tokenListAnswer,
        tokenExportAnswer,
        tokenStatsAnswer,
        taskCostsAnswer,
        agentCostsAnswer,
        tokenTrendsAnswer,
      ]),
    },
  },
  cache: {
    models: ['tokens', 'agents', 'tasks', 'projects'],
    scope: 'workspace',
    caller: TASK_VIEW,
    unless: ({ action, timeframe }) =>
      action === 'trends' || action === 'export' || Object.hasOwn(TIMEFRAMES, timeframe),
  },
  respond: async ({ query, identity, services }) => ({ body: await reportOf(services, identity, query) }),
  async handle({ query, identity, services, exchange }) {
    const { action, timeframe, format } = query;
    if (action !== 'export') return { body: await reportOf(services, identity, query) };
    evidentFor(query);
    const now = services.now();
    const pages = allTokens(services.reads, identity.workspace, timeframe, now);
    await sendExport(exchange, exportName(timeframe, format, now), format, pages);
    return HANDLED;
  },
});

const byAgent = defineRoute({
  method: 'get',
  path: '/api/tokens/by-agent',
  tag: 'Tokens',
  summary: 'Get reported tokens and their costs by agent and model',
  access: 'viewer',
  query: byAgentQuery,
  responses: { 200: { description: 'Agents, those with the most tokens first', schema: byAgentAnswer } },
  handle: async ({ query, identity, services }) => ({
    body: await tokensByAgent(services.reads, identity.workspace, query.days, services.now(), listedOf(query)),
  }),
});

export const tokenUsageRoutes: readonly Route[] = [usage, byAgent];
