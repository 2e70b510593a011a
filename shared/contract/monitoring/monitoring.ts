/** Activities, audit, events, health. */
import { z } from 'zod';
import { filterParam, jsonObject, limitParam, offsetParam, secondsParam, unixSeconds } from '../common.ts';

export const activitySchema = z
  .object({
    id: z.int(),
    type: z.string(),
    entity_type: z.string(),
    entity_id: z.int().describe('0 when the activity is about no single entity'),
    actor: z.string(),
    description: z.string(),
    metadata: jsonObject.nullable(),
    data: jsonObject.nullable().describe('the same as metadata'),
    created_at: unixSeconds,
    workspace_id: z.int(),
    entity: jsonObject.nullable().describe('the entity as it is now; null when it is gone'),
  })
  .meta({ id: 'Activity' });
export type ActivityRecord = z.infer<typeof activitySchema>;

export const activitiesQuery = z.object({
  type: filterParam.describe('one type, or several separated by commas'),
  actor: filterParam,
  entity_type: filterParam,
  since: secondsParam.describe('only activities after this moment, Unix seconds'),
  limit: limitParam(50, 500),
  offset: offsetParam,
  stats: z.string().optional().describe('its presence asks for statistics instead of a list'),
  hours: z
    .string()
    .regex(/^\d{1,5}$/, 'must be a whole number of hours')
    .transform(Number)
    .refine((hours) => hours >= 1 && hours <= 87_600, 'must be from 1 to 87600')
    .optional()
    .meta({ override: { type: 'integer', minimum: 1, maximum: 87_600, default: 24 } })
    .describe('window of the statistics, default 24'),
});
export type ActivitiesQuery = z.infer<typeof activitiesQuery>;

export const activitiesAnswer = z.object({ activities: z.array(activitySchema), total: z.int(), hasMore: z.boolean() });
export const activityStatsAnswer = z.object({
  timeframe: z.string(),
  activityByType: z.array(z.object({ type: z.string(), count: z.int() })),
  topActors: z.array(z.object({ actor: z.string(), activity_count: z.int() })),
  timeline: z.array(z.object({ timestamp: unixSeconds, count: z.int(), hour: z.string() })),
});

export const auditEntrySchema = z
  .object({
    id: z.int(),
    action: z.string(),
    actor: z.string(),
    actor_id: z.int().nullable(),
    target_type: z.string().nullable(),
    target_id: z.int().nullable(),
    detail: jsonObject.nullable(),
    ip_address: z.string().nullable(),
    user_agent: z.string().nullable(),
    created_at: unixSeconds,
    workspace_id: z.int(),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof auditEntrySchema>;

export const auditQuery = z.object({
  action: filterParam,
  actor: filterParam,
  since: secondsParam.describe('from this moment, Unix seconds'),
  until: secondsParam.describe('to this moment, Unix seconds'),
  limit: limitParam(100, 10_000),
  offset: offsetParam,
});
export type AuditQuery = z.infer<typeof auditQuery>;

export const auditAnswer = z.object({
  entries: z.array(auditEntrySchema),
  total: z.int(),
  limit: z.int(),
  offset: z.int(),
});

export const eventsQuery = z.object({
  since: z
    .string()
    .regex(/^\d{1,16}(\.\d{1,4})?$/, 'must be the id of an earlier frame')
    .optional()
    .describe('resume after the frame with this id; the header Last-Event-ID does the same and wins'),
  kind: filterParam.describe('only frames of these types, separated by commas'),
});

export const streamFrameSchema = z.object({
  type: z.string(),
  data: jsonObject.nullable(),
  timestamp: z.int().describe('Unix milliseconds'),
});
