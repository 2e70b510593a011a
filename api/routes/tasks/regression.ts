/** Compares tasks before and after a change. */
import { taskRegression } from '../../../queries/tasks/regression.ts';
import { betaStart, regressionQuery, regressionResponse } from '../../../shared/contract/tasks/regression.ts';
import { invalid } from '../../../shared/errors.ts';
import { taskViewOf } from '../../../shared/identity.ts';
import { seconds } from '../../../shared/time.ts';
import { defineRoute } from '../../http/route.ts';
import { SEEN } from './tasks.ts';

export const taskRegressionRoute = defineRoute({
  method: 'get',
  path: '/api/tasks/regression',
  summary: 'Compare duration and interventions of tasks before and after a time',
  description: `Compares tasks completed since \`beta_start\` with those completed before it, in a window as long, \`lookback_seconds\` at most. ${SEEN}`,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  limit: 'read',
  query: regressionQuery,
  responses: { 200: { description: 'Both windows, and how they differ', schema: regressionResponse } },
  async respond({ query, identity, services }) {
    const now = seconds(services.now());
    const start = betaStart(query) ?? now;
    if (start > now) throw invalid('beta_start: must not be in the future');
    const windows = { start, lookback: query.lookback_seconds };
    return taskRegression(services.reads, taskViewOf(identity), windows, now);
  },
});
