/** Activities, and statistics of them. */
import { z } from 'zod';
import { ACTIVITY_MODELS, activityStats, listActivities } from '../../../queries/monitoring/activities.ts';
import { PEOPLE_MODELS } from '../../../queries/names.ts';
import * as contract from '../../../shared/contract/monitoring/activities.ts';
import { peopleOfActivity } from '../../../shared/events/monitoring/activities.ts';
import { TASK_VIEW, taskViewOf } from '../../../shared/identity.ts';
import { withName } from '../../../shared/names.ts';
import { seconds } from '../../../shared/time.ts';
import { defineCachedRoute } from '../../http/route.ts';
import { SEEN } from '../tasks/tasks.ts';

export const activityRoute = defineCachedRoute({
  method: 'get',
  path: '/api/activities',
  page: { list: 'activities' },
  summary: 'List activities, newest first',
  mcp: { tool: 'list_activities' },
  description: `With \`stats\` in the query, counts by type, actor and hour for the last \`hours\` instead. ${SEEN} Activities about other tasks are left out.`,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.activitiesQuery,
  responses: {
    200: {
      description: 'Activities, or statistics with `stats`',
      schema: z.union([contract.activitiesResponse, contract.activityStatsResponse]),
    },
  },
  cache: {
    models: [...ACTIVITY_MODELS, ...PEOPLE_MODELS],
    caller: TASK_VIEW,
    unless: (query) => query.stats !== undefined,
  },
  async respond({ query, identity, services }) {
    const view = taskViewOf(identity);
    if (query.stats !== undefined) {
      return activityStats(services.reads, view, query.hours ?? 24, seconds(services.now()));
    }
    const { reads, displayNames } = services;
    const { workspace } = identity;
    const actor = query.actor === undefined ? undefined : await displayNames.usernameOf(workspace, query.actor);
    const found = await listActivities(reads, view, { ...query, actor });
    const people = found.activities.map(peopleOfActivity);
    const shownAs = await displayNames.of(
      workspace,
      people.flatMap((some) => some.map(({ username }) => username)),
    );
    const activities = found.activities.map((one, at) =>
      (people[at] ?? []).length === 0
        ? one
        : {
            ...one,
            actor: shownAs(one.actor, one.created_at),
            description: withName(one.description, one.actor, shownAs(one.actor, one.created_at)),
          },
    );
    return { ...found, activities };
  },
});
