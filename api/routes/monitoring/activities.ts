/** Activities, and statistics of them. */
import { z } from 'zod';
import { ACTIVITY_MODELS, activityStats, listActivities } from '../../../queries/monitoring/activities.ts';
import {
  activitiesAnswer,
  activitiesQuery,
  activityStatsAnswer,
} from '../../../shared/contract/monitoring/activities.ts';
import { seconds } from '../../../shared/time.ts';
import { defineRoute, type Route } from '../../http/route.ts';

export const activityRoutes: readonly Route[] = [
  defineRoute({
    method: 'get',
    path: '/api/activities',
    tag: 'Monitoring',
    summary: 'List activities, newest first',
    description: 'With `stats` in the query, counts by type, actor and hour for the last `hours` instead.',
    access: 'viewer',
    query: activitiesQuery,
    responses: {
      200: {
        description: 'Activities, or statistics with `stats`',
        schema: z.union([activitiesAnswer, activityStatsAnswer]),
      },
    },
    cache: { models: ACTIVITY_MODELS, scope: 'workspace', unless: (query) => query.stats !== undefined },
    async handle({ query, identity, services }) {
      if (query.stats !== undefined) {
        return {
          body: await activityStats(services.reads, identity.workspace, query.hours ?? 24, seconds(services.now())),
        };
      }
      return { body: await listActivities(services.reads, identity.workspace, query) };
    },
  }),
];
