/** How many tokens were used, by whom, for what, and what they cost. */
import { z } from 'zod';
import { allTokens, listTokens } from '../../../queries/tokens/reports.ts';
import { tokenStats } from '../../../queries/tokens/stats.ts';
import { taskCosts } from '../../../queries/tokens/task-costs.ts';
import { agentCosts, tokensByAgent, tokenTrends } from '../../../queries/tokens/usage.ts';
import {
  agentCostsAnswer,
  byAgentAnswer,
  byAgentQuery,
  TIMEFRAMES,
  TOKEN_ACTIONS,
  taskCostsAnswer,
  tokenExportAnswer,
  tokenListAnswer,
  tokenStatsAnswer,
  tokensQuery,
  tokenTrendsAnswer,
} from '../../../shared/contract/tokens/usage.ts';
import { AppError } from '../../../shared/errors.ts';
import { taskViewOf } from '../../../shared/identity.ts';
import { defineRoute, HANDLED, type Route } from '../../http/route.ts';
import { exportName, sendExport } from './export.ts';

const usage = defineRoute({
  method: 'get',
  path: '/api/tokens',
  tag: 'Tokens',
  summary: 'Get reported tokens and their costs: reports, sums, trends or an export',
  description:
    'Sums name at most 1,000 agents, models, sessions and tasks, those with the most tokens or the highest costs; totals include all. Time lines have at most 366 days. An export has all reports of the timeframe, as JSON or CSV.',
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
    unless: ({ action, timeframe }) =>
      action === 'trends' || action === 'export' || Object.hasOwn(TIMEFRAMES, timeframe),
  },
  async handle({ query: { action, timeframe, format }, identity, services, exchange }) {
    const { reads } = services;
    const { workspace } = identity;
    const now = services.now();
    switch (action) {
      case 'list':
        return { body: await listTokens(reads, workspace, timeframe, now) };
      case 'stats':
        return { body: await tokenStats(reads, workspace, timeframe, now) };
      case 'agent-costs':
        return { body: await agentCosts(reads, workspace, timeframe, now) };
      case 'task-costs':
        return { body: await taskCosts(reads, taskViewOf(identity), timeframe, now) };
      case 'trends':
        return { body: await tokenTrends(reads, workspace, timeframe, now) };
      case 'export': {
        const pages = allTokens(reads, workspace, timeframe, now);
        await sendExport(exchange, exportName(timeframe, format, now), format, pages);
        return HANDLED;
      }
      default:
        throw new AppError(400, `action: must be one of ${TOKEN_ACTIONS.join(', ')}`, { body: { action } });
    }
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
    body: await tokensByAgent(services.reads, identity.workspace, query.days, services.now()),
  }),
});

export const tokenUsageRoutes: readonly Route[] = [usage, byAgent];
