/** Scheduled jobs: the record, their logs and history, and the actions on them. */
import { z } from 'zod';
import { unixSeconds } from '../common.ts';
import { text } from '../storable.ts';

/** `late`: it succeeded, for a time that came while no worker was running. */
export const RUN_STATUSES = ['success', 'late', 'error', 'running'] as const;

export const cronJobSchema = z
  .object({
    name: z.string(),
    schedule: z.string().describe('a time zone of its own follows in brackets: 0 4 * * * (Europe/Berlin)'),
    enabled: z.boolean(),
    last_run: unixSeconds.nullable(),
    last_status: z
      .enum(RUN_STATUSES)
      .nullable()
      .describe('late: success, but its time came while no worker was running'),
    id: z.string().describe('the name'),
    command: z.string(),
    agentId: z.string().optional().describe('name of the agent that gets the tasks of a text'),
    timezone: z.string().optional(),
    staggerSeconds: z.int().optional(),
    lastRun: z.int().nullable().describe('Unix milliseconds'),
    nextRun: z.int().nullable().describe('Unix milliseconds; null while the job is off'),
    lastStatus: z.enum(RUN_STATUSES).nullable(),
    lastError: z.string().nullable(),
  })
  .meta({ id: 'CronJob' });
export type CronJobRecord = z.infer<typeof cronJobSchema>;

const MAX_NAME = 200;
/** An hour: jobs of the same hour can be spread over it. */
export const MAX_STAGGER = 3_600;
const selector = text(MAX_NAME).optional();

export const cronQuery = z.object({
  action: z.enum(['list', 'logs', 'history']).default('list'),
  job: selector.describe('for logs: name of the job; without it, the last lines of all jobs'),
  jobId: selector.describe('for history: name of the job'),
  page: z
    .string()
    .optional()
    .transform((value) => (value !== undefined && /^[1-9]\d{0,5}$/.test(value) ? Number(value) : 1))
    .meta({ override: { type: 'integer', minimum: 1, maximum: 999_999, default: 1 } }),
  query: text(200).optional().describe('for history: text in status or error'),
});

export const cronResponse = z.union([
  z.object({ jobs: z.array(cronJobSchema) }),
  z.object({
    logs: z.array(
      z.object({
        timestamp: z.int().describe('Unix milliseconds'),
        message: z.string(),
        level: z.enum(['info', 'error']),
        job: z.string(),
      }),
    ),
  }),
  z.object({
    entries: z.array(
      z.object({
        jobId: z.string(),
        status: z.enum(RUN_STATUSES),
        timestamp: z.int().describe('Unix milliseconds'),
        durationMs: z.int().optional(),
        error: z.string().optional(),
      }),
    ),
    total: z.int(),
    hasMore: z.boolean(),
    page: z.int(),
  }),
]);

const ACTIONS = ['toggle', 'trigger', 'add', 'remove', 'clone'] as const;
export const cronBody = z.object({
  action: z.enum(ACTIONS, { error: `Invalid action: must be one of ${ACTIONS.join(', ')}` }),
  name: text(MAX_NAME).trim().optional(),
  jobId: selector.describe('the same as `name`'),
  jobName: selector.describe('the same as `name`'),
  schedule: text(200)
    .optional()
    .describe('cron’s five fields, such as 0 4 * * *; a time zone may follow in brackets: 0 4 * * * (Europe/Berlin)'),
  timezone: text(100).optional().describe('IANA name; default: the time zone of the service, TZ'),
  staggerSeconds: z
    .int()
    .min(1)
    .max(MAX_STAGGER)
    .optional()
    .describe('runs begin up to so many seconds late, always the same for one job'),
  command: text(5_000)
    .optional()
    .describe('id of a scheduled task, as GET /api/scheduler lists them, or any other text, which becomes a task'),
  agentId: text(100).optional().describe('name of the agent that gets the tasks of a text; without it, the queue'),
  enabled: z.boolean().optional(),
  mode: z.enum(['force', 'due']).default('force').describe('for trigger; due: only if its time has come'),
});
export type CronBody = z.infer<typeof cronBody>;

export const cronDoneResponse = z.object({
  success: z.literal(true),
  enabled: z.boolean().optional(),
  ran: z.boolean().optional(),
  status: z.enum(RUN_STATUSES).optional(),
  message: z.string().optional(),
  clonedName: z.string().optional(),
});
