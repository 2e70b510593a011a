/** Sums of reported tokens. */
import { z } from 'zod';
import { wholeText } from '../common.ts';
import { derivationsSchema, evidenceParams } from '../evidence.ts';
import { tokenRecordSchema } from './reports.ts';

/** Maximum number of agents, models, sessions or tasks in a response: those with the most tokens or costs. */
export const MAX_GROUPS = 1_000;
/** Maximum number of days in a time line: the newest. */
export const MAX_TIMELINE_DAYS = 366;

export const TOKEN_ACTIONS = ['list', 'stats', 'agent-costs', 'task-costs', 'trends', 'export'] as const;

export const TIMEFRAMES: Readonly<Record<string, number>> = {
  hour: 3_600_000,
  day: 86_400_000,
  week: 7 * 86_400_000,
  month: 30 * 86_400_000,
};

const ALIASES: ReadonlyMap<string, string> = new Map([
  ['task_costs', 'task-costs'],
  ['taskcosts', 'task-costs'],
]);

const evidence = derivationsSchema.optional();

export const tokensQuery = z.object({
  ...evidenceParams,
  action: z
    .string()
    .max(100)
    .default('list')
    .transform((value) => {
      const action = value.trim().toLowerCase();
      return ALIASES.get(action) ?? action;
    })
    .meta({ override: { type: 'string', enum: [...TOKEN_ACTIONS], default: 'list' } }),
  timeframe: z
    .string()
    .max(100)
    .default('all')
    .meta({ override: { type: 'string', maxLength: 100, default: 'all' } })
    .describe(
      'hour, day, week, month (30 days), or since a day (2026-11-26, in UTC) or time (2026-11-26T10:00:00Z); anything else counts as all',
    ),
  before: wholeText(0, 9_999_999_999_999, 'must be Unix milliseconds')
    .optional()
    .describe('of a list: only reports with an earlier `timestamp`, Unix milliseconds; `total` counts all'),
  format: z.enum(['json', 'csv']).default('json').describe('of an export; CSV has no sums, and so no evidence'),
  bom: z.enum(['0', '1']).optional().describe('1: CSV begins with a byte order mark, so that Excel reads it as UTF-8'),
});
export type TokensQuery = z.infer<typeof tokensQuery>;

export const tokenStatsSchema = z
  .object({
    totalTokens: z.number(),
    totalCost: z.number().describe('US dollars'),
    estimatedCost: z.number().describe('the part of totalCost for models that no price matches'),
    requestCount: z.int(),
    avgTokensPerRequest: z.int(),
    avgCostPerRequest: z.number(),
  })
  .meta({ id: 'TokenStats' });
export type TokenStats = z.infer<typeof tokenStatsSchema>;

const byName = z.record(z.string(), tokenStatsSchema);
const timeline = z.array(z.object({ date: z.string(), cost: z.number(), tokens: z.number() }));

export const tokenListResponse = z.object({
  usage: z.array(tokenRecordSchema).describe('the newest 100'),
  total: z.int(),
  timeframe: z.string(),
  evidence,
});
export type TokenListResponse = z.infer<typeof tokenListResponse>;
export const tokenStatsResponse = z.object({
  summary: tokenStatsSchema,
  models: byName,
  sessions: byName,
  agents: byName,
  timeframe: z.string(),
  recordCount: z.int(),
  evidence,
});
export type TokenStatsResponse = z.infer<typeof tokenStatsResponse>;

export const agentCostsResponse = z.object({
  agents: z.record(
    z.string(),
    z.object({ stats: tokenStatsSchema, models: byName, sessions: z.array(z.string()), timeline }),
  ),
  timeframe: z.string(),
  recordCount: z.int(),
  evidence,
});
export type AgentCostsResponse = z.infer<typeof agentCostsResponse>;

const shared = z.object({ stats: tokenStatsSchema, taskCount: z.int(), taskIds: z.array(z.int()) });
export const taskCostsResponse = z.object({
  summary: tokenStatsSchema.describe('reports for tasks that exist'),
  tasks: z
    .array(
      z.object({
        taskId: z.int(),
        title: z.string(),
        status: z.string(),
        priority: z.string(),
        assignedTo: z.string().nullable(),
        project: z.object({
          id: z.int().nullable(),
          name: z.string().nullable(),
          slug: z.string().nullable(),
          ticketRef: z.string().nullable(),
        }),
        stats: tokenStatsSchema,
        models: byName,
        timeline,
      }),
    )
    .describe('the most expensive first'),
  agents: z.record(z.string(), shared),
  projects: z.record(z.string(), shared).describe('by id'),
  unattributed: tokenStatsSchema.describe('reports without a task'),
  timeframe: z.string(),
  recordCount: z.int(),
  attributedRecordCount: z.int().describe('reports with a task, whether or not it still exists'),
  evidence,
});
export type TaskCostsResponse = z.infer<typeof taskCostsResponse>;

export const tokenTrendsResponse = z.object({
  trends: z
    .array(z.object({ timestamp: z.string(), tokens: z.number(), cost: z.number(), requests: z.int() }))
    .describe('hours with reports, at most the last 24'),
  timeframe: z.string(),
  evidence,
});

export type TokenTrendsResponse = z.infer<typeof tokenTrendsResponse>;

export const tokenExportResponse = z.object({
  usage: z.array(tokenRecordSchema),
  summary: tokenStatsSchema,
  models: byName,
  sessions: byName,
  evidence,
});

export const byAgentQuery = z.object({
  ...evidenceParams,
  days: z
    .string()
    .optional()
    .transform((value) => {
      const days = value === undefined || value.trim() === '' ? Number.NaN : Number(value);
      return Number.isFinite(days) ? Math.min(Math.max(days, 1), 365) : 30;
    })
    .meta({ override: { type: 'number', minimum: 1, maximum: 365, default: 30 } }),
});

export const byAgentResponse = z.object({
  agents: z
    .array(
      z.object({
        agent: z.string(),
        agent_id: z.int().nullable().describe('null: no agent of the workspace had the name'),
        total_input_tokens: z.number().describe('cached ones included'),
        total_output_tokens: z.number(),
        total_tokens: z.number(),
        total_cost: z.number(),
        estimated_cost: z.number().describe('the part of total_cost for models that no price matches'),
        session_count: z.int(),
        request_count: z.int(),
        last_active: z.string(),
        models: z.array(
          z.object({
            model: z.string(),
            input_tokens: z.number(),
            output_tokens: z.number(),
            request_count: z.int(),
            cost: z.number(),
            estimated_cost: z.number(),
          }),
        ),
      }),
    )
    .describe('those with the most tokens first'),
  summary: z.object({
    total_cost: z.number(),
    estimated_cost: z.number(),
    total_tokens: z.number(),
    agent_count: z.int(),
    days: z.number(),
  }),
  evidence,
});
export type ByAgentResponse = z.infer<typeof byAgentResponse>;
