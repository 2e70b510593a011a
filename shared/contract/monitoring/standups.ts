/** Standup reports: the completed and pending work of every agent on a day. */
import { z } from 'zod';
import { standupSummary } from '../../events/monitoring/standups.ts';
import { limitParam, offsetParam, unixSeconds } from '../common.ts';
import { text } from '../storable.ts';
import { taskSchema } from '../tasks/tasks.ts';

const isDay = (value: string): boolean => {
  const at = Date.parse(`${value}T00:00:00Z`);
  return /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(at) && new Date(at).toISOString().startsWith(value);
};

export const standupBody = z.object({
  date: z
    .string()
    .refine(isDay, 'must be a day as YYYY-MM-DD')
    .optional()
    .describe('UTC; today unless given')
    .meta({ override: { type: 'string', format: 'date' } }),
  agents: z
    .preprocess((names) => (Array.isArray(names) ? names : []), z.array(text(500)))
    .optional()
    .transform((names) => names ?? [])
    .meta({ override: { type: 'array', items: { type: 'string' } } })
    .describe('names of the agents to report on; all of them unless given'),
});

const listed = { id: z.int(), title: z.string(), status: z.string() };
const completed = z.object({ ...listed, updated_at: unixSeconds });
const due = z.object({ ...listed, created_at: unixSeconds, due_date: unixSeconds.nullable() });
const blocked = z.object({
  ...listed,
  priority: z.string(),
  created_at: unixSeconds,
  metadata: z.string().describe('JSON'),
});
const named = { agent: z.string() };

const overdueTask = taskSchema.omit({ project_name: true, project_prefix: true, ticket_ref: true }).extend({
  due_date: unixSeconds,
  tags: z.string().describe('JSON'),
  metadata: z.string().describe('JSON'),
  agent_name: z.string().nullable().describe('the assignee, if that is an agent'),
});

const agentReport = z.object({
  agent: z.object({
    name: z.string(),
    role: z.string(),
    status: z.string(),
    last_seen: unixSeconds.nullable(),
    last_activity: z.string().nullable(),
  }),
  completedToday: z.array(completed),
  inProgress: z.array(due),
  assigned: z.array(due.extend({ priority: z.string() })),
  review: z.array(completed),
  blocked: z.array(blocked),
  activity: z.object({ actionCount: z.int(), commentsCount: z.int() }),
});
export type AgentReport = z.infer<typeof agentReport>;

export const standupReport = z
  .object({
    date: z.string(),
    generatedAt: z.string().describe('ISO 8601'),
    summary: standupSummary,
    agentReports: z.array(agentReport).describe('by name'),
    teamAccomplishments: z.array(completed.extend(named)).describe('the 10 newest of what was completed'),
    teamBlockers: z.array(blocked.extend(named)),
    overdueTasks: z.array(overdueTask).describe('of the whole workspace, earliest first'),
  })
  .meta({ id: 'StandupReport' });
export type StandupReport = z.infer<typeof standupReport>;
export const standupResponse = z.object({ standup: standupReport });

export const standupsQuery = z.object({ limit: limitParam(10), offset: offsetParam });
export type StandupsQuery = z.infer<typeof standupsQuery>;
export const standupsResponse = z.object({
  history: z.array(
    z.object({
      id: z.string().describe('the date and the place in this list'),
      date: z.string(),
      generatedAt: z.string(),
      summary: standupSummary,
      agentCount: z.int(),
    }),
  ),
  total: z.int(),
  page: z.int(),
  limit: z.int(),
});
