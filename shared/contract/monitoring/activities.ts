/** Activities of a workspace: the list and its statistics. */
import { z } from 'zod';
import { filterParam, jsonObject, limitParam, offsetParam, secondsParam, unixSeconds, wholeText } from '../common.ts';
import { nameFilter } from '../storable.ts';

export const activitySchema = z
  .object({
    id: z.int(),
    type: z.string(),
    entity_type: z.string(),
    entity_id: z.int().describe('0 if the activity does not concern a single entity'),
    actor: z.string(),
    description: z.string(),
    metadata: jsonObject.nullable(),
    data: jsonObject.nullable().describe('same as `metadata`'),
    created_at: unixSeconds,
    workspace_id: z.int(),
    entity: jsonObject.nullable().describe('the entity as it is now; null if it no longer exists'),
  })
  .meta({ id: 'Activity' });
export type Activity = z.infer<typeof activitySchema>;

export const activitiesQuery = z.object({
  type: filterParam.describe('one type, or several separated by commas'),
  actor: nameFilter,
  entity_type: filterParam,
  since: secondsParam.describe('only activities after this time, Unix seconds'),
  limit: limitParam(50, 500),
  offset: offsetParam,
  stats: z.string().optional().describe('if present, the response contains statistics instead of a list'),
  hours: wholeText(1, 87_600)
    .optional()
    .meta({ override: { type: 'integer', minimum: 1, maximum: 87_600, default: 24 } })
    .describe('time window of the statistics; default 24'),
});
export type ActivitiesQuery = z.infer<typeof activitiesQuery>;

export const activitiesResponse = z.object({
  activities: z.array(activitySchema),
  total: z.int(),
  hasMore: z.boolean(),
});
export const activityStatsResponse = z.object({
  timeframe: z.string(),
  activityByType: z.array(z.object({ type: z.string(), count: z.int() })),
  topActors: z.array(z.object({ actor: z.string(), activity_count: z.int() })),
  timeline: z.array(z.object({ timestamp: unixSeconds, count: z.int(), hour: z.string() })),
});
