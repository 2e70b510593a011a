/** What an agent did, and what it cost, with the events behind each number. */
import { z } from 'zod';
import { ATTRIBUTIONS } from '../../events/agents/attribution.ts';
import { jsonObject, limitParam, onlyOne, unixSeconds } from '../common.ts';
import { evidenceSchema } from '../evidence.ts';
import { reportQuery, timeframeSchema } from './scope.ts';

export const ATTRIBUTION_SECTIONS = ['identity', 'audit', 'mutations', 'cost'] as const;
export type AttributionSection = (typeof ATTRIBUTION_SECTIONS)[number];

/** Maximum number of listed models: those with the most tokens. Totals include the others. */
export const MAX_MODELS = 100;

export const attributionQuery = reportQuery(ATTRIBUTION_SECTIONS).extend({
  evidence: onlyOne.describe(
    '`1` adds, for each number of the sections, the events of the log that it was derived from',
  ),
  cursor: z
    .string()
    .optional()
    .describe('`next` of a page of evidence: gets the page after it, of that number alone, without sections'),
  limit: limitParam(20).describe('events per number; if a number has more, its evidence is a range'),
});
export type AttributionQuery = z.infer<typeof attributionQuery>;

const attributedBy = z
  .enum(ATTRIBUTIONS)
  .describe(
    'how it is known: `key`, the own key of the agent; `header`, a caller that named the agent in `x-agent-name`; `call`, a call that only the agent makes',
  );

const identity = z.object({
  id: z.int(),
  name: z.string(),
  role: z.string(),
  status: z.string(),
  last_seen: unixSeconds.nullable(),
  last_activity: z.string().nullable(),
  created_at: unixSeconds,
  session_key: z.literal('***').nullable().describe('`***` if there is one'),
  has_soul: z.boolean(),
  config_keys: z.array(z.string()),
  lifetime_stats: z.object({
    tasks_total: z.int().describe('assigned to the agent now'),
    tasks_completed: z.int(),
    tasks_active: z.int().describe('assigned or in progress'),
    comments_authored: z.int(),
  }),
});

const statusChange = z.object({
  id: z.int(),
  type: z.string(),
  description: z.string(),
  data: jsonObject.nullable(),
  metadata: jsonObject.nullable().describe('same as `data`'),
  created_at: unixSeconds,
  position: z.int().describe('of the event in the log'),
  attributed_by: attributedBy,
});
const activity = statusChange.extend({ entity_type: z.string(), entity_id: z.int() });

const audit = z.object({
  total_activities: z.int(),
  heartbeats: z
    .int()
    .describe('its heartbeats; those that changed nothing are no activities, and count at the last of 5 minutes'),
  by_type: z.record(z.string(), z.int()),
  activities: z.array(activity).describe('the newest 200'),
  total_entries: z.int().describe('in the audit trail'),
  by_action: z.record(z.string(), z.int()),
  audit_log_entries: z
    .array(
      z.object({
        id: z.int(),
        action: z.string(),
        actor: z.string(),
        detail: jsonObject.nullable(),
        created_at: unixSeconds,
        position: z.int(),
        attributed_by: attributedBy,
      }),
    )
    .describe('the newest 100'),
});

const mutations = z.object({
  task_mutations: z.array(activity).describe('the newest 100 changes of tasks'),
  comments: z
    .array(
      z.object({
        id: z.int(),
        task_id: z.int(),
        content: z.string(),
        created_at: unixSeconds,
        mentions: z.array(z.string()),
        task_title: z.string().nullable().describe('null: the task was deleted'),
        content_preview: z.string().describe('the first 200 characters'),
        position: z.int(),
        attributed_by: attributedBy,
      }),
    )
    .describe('the newest 50'),
  status_changes: z
    .array(statusChange)
    .describe('the newest 50 changes of agents that the agent made, its own status included; no heartbeats'),
  summary: z.object({
    task_mutations_count: z.int(),
    comments_count: z.int(),
    status_changes_count: z.int(),
  }),
});

const sums = {
  input_tokens: z.number().describe('cached ones included'),
  output_tokens: z.number(),
  cost: z.number().describe('US dollars'),
  estimated_cost: z.number().describe('the part of cost for models that no price matches'),
};

const cost = z.object({
  by_model: z
    .array(z.object({ model: z.string(), request_count: z.int(), ...sums }))
    .describe(`most tokens first, at most ${MAX_MODELS}`),
  total: z.object({ ...sums, requests: z.int() }),
  daily_trend: z.array(
    z.object({
      date: z.string().describe('UTC, as 2026-01-31'),
      day_bucket: unixSeconds.describe('when the day began'),
      ...sums,
      requests: z.int(),
    }),
  ),
});

export const attributionResponse = z.object({
  agent_name: z.string(),
  timeframe: timeframeSchema,
  access_scope: z.enum(['self', 'privileged']),
  identity: identity.optional(),
  audit: audit.optional(),
  mutations: mutations.optional(),
  cost: cost.optional(),
  evidence: z.record(z.string(), evidenceSchema).optional().describe('by number, such as `cost.total`'),
});
export type AttributionResponse = z.infer<typeof attributionResponse>;
