/** How tasks came out. */
import { OUTCOME_MODELS, taskOutcomes } from '../../../queries/tasks/outcomes.ts';
import { outcomesQuery, outcomesResponse, TIMEFRAMES } from '../../../shared/contract/tasks/outcomes.ts';
import { TASK_VIEW, taskViewOf } from '../../../shared/identity.ts';
import { seconds } from '../../../shared/time.ts';
import { defineCachedRoute } from '../../http/route.ts';
import { SEEN } from './tasks.ts';

export const taskOutcomeRoute = defineCachedRoute({
  method: 'get',
  path: '/api/tasks/outcomes',
  summary: 'Outcomes of completed tasks',
  description: SEEN,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: outcomesQuery,
  responses: { 200: { description: 'Counts, rates and common errors', schema: outcomesResponse } },
  cache: {
    models: OUTCOME_MODELS,
    caller: TASK_VIEW,
    unless: ({ timeframe }) => TIMEFRAMES.has(timeframe),
  },
  respond: ({ query, identity, services }) =>
    taskOutcomes(services.reads, taskViewOf(identity), query.timeframe, seconds(services.now())),
});
