/** Tasks: the record, the list, creating, changing one or many, deleting. */
import { z } from 'zod';
import { taskData, taskSource } from '../../events/tasks/tasks.ts';
import { filterParam, idNumber, limitParam, offsetParam, unixSeconds } from '../common.ts';
import { isStorable, nameFilter, storable, text, UNSTORABLE_TEXT } from '../storable.ts';
import { recurrenceSchema } from './recurrence.ts';

export const TASK_STATUSES = [
  'backlog',
  'inbox',
  'assigned',
  'awaiting_owner',
  'in_progress',
  'review',
  'quality_review',
  'done',
  'failed',
] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];
/** Most urgent first. */
export const PRIORITIES = ['critical', 'high', 'medium', 'low'] as const;
export const OUTCOMES = ['success', 'failed', 'partial', 'abandoned'] as const;

/** The rank of a priority by urgency, from 0; unknown values come last. */
export function priorityRank(priority: string): number {
  const rank = (PRIORITIES as readonly string[]).indexOf(priority);
  return rank < 0 ? PRIORITIES.length : rank;
}

// --- Record -----------------------------------------------------------------------------------------------------------

/** GitHub fields of a task; null: not set. */
const sourceFields = { ...taskSource.shape, github_synced_at: unixSeconds.nullable() };

// Clients refer to agents by their names.
const { shape } = taskData.omit({ assignee_id: true });

export const taskSchema = z
  .object({
    id: z.int(),
    ...shape,
    status: shape.status.describe(TASK_STATUSES.join(', ')),
    priority: shape.priority.describe(PRIORITIES.join(', ')),
    assigned_to: shape.assigned_to.describe('name of an agent or a user'),
    due_date: unixSeconds.nullable(),
    outcome: shape.outcome.describe(OUTCOMES.join(', ')),
    completed_at: unixSeconds.nullable(),
    dispatch_attempts: shape.dispatch_attempts.describe(
      'how often the task was returned: its agent was silent, its dispatch failed, or an automatic review rejected it',
    ),
    created_at: unixSeconds,
    updated_at: unixSeconds,
    workspace_id: z.int(),
    ...sourceFields,
    project_name: z.string().nullable(),
    project_prefix: z.string().nullable(),
    ticket_ref: z.string().optional().describe('prefix of the project and number in it: `TASK-007`'),
  })
  .meta({ id: 'Task' });
export type TaskRecord = z.infer<typeof taskSchema>;

export const listedTaskSchema = taskSchema
  .extend({ comment_count: z.int().describe('with replies') })
  .meta({ id: 'ListedTask' });
export type ListedTask = z.infer<typeof listedTaskSchema>;

// --- List -------------------------------------------------------------------------------------------------------------

const filter = filterParam.refine(isStorable, UNSTORABLE_TEXT).describe('exact');

export const TASK_SORTS = ['created_at', 'updated_at', 'priority', 'due_date'] as const;

export const tasksQuery = z.object({
  status: filter,
  assigned_to: nameFilter.describe('exact'),
  priority: filter,
  project_id: z
    .string()
    .optional()
    .transform((value) => (value !== undefined && /^\d{1,15}$/.test(value.trim()) ? Number(value) : undefined))
    .meta({ override: { type: 'integer', minimum: 1, maximum: 999_999_999_999_999 } })
    .describe('ignored unless it is a number'),
  sort: z
    .enum(TASK_SORTS)
    .optional()
    .describe('default created_at; priority: most urgent first; due_date: those without one last'),
  order: z.enum(['asc', 'desc']).optional().describe('default: newest first, most urgent first, next due first'),
  limit: limitParam(50, 200),
  offset: offsetParam,
});
export type TasksQuery = z.infer<typeof tasksQuery>;

export const tasksResponse = z.object({
  tasks: z.array(listedTaskSchema),
  total: z.int().describe('tasks that match the filters'),
  page: z.int().describe('from 1'),
  limit: z.int(),
});

// --- Create and change ------------------------------------------------------------------------------------------------

/** 1 January 2100, Unix seconds. */
const LAST_MOMENT = 4_102_444_800;
const MAX_RETRIES = 1_000_000;
const moment = z.int().min(0).max(LAST_MOMENT).describe('Unix seconds, UTC');
const hours = z.number().min(0).max(10_000);

const metadata = z
  .looseObject({
    implementation_repo: text(200).min(1).optional(),
    code_location: text(500).min(1).optional(),
    recurrence: recurrenceSchema.nullable().optional().describe('creates tasks like this one, on a schedule'),
  })
  .superRefine(storable());

const taskStatus = z.enum(TASK_STATUSES);

export const createTaskBody = z.object({
  title: text(500).min(1),
  description: text(5_000).optional().describe('`@name` mentions an agent or a user'),
  status: taskStatus.optional().describe('default inbox, or assigned when there is an assignee'),
  priority: z.enum(PRIORITIES).optional().describe('default medium'),
  project_id: idNumber.optional().describe('an active project; default: the general one'),
  assigned_to: text(100).normalize('NFC').optional().describe('name of an agent or a user'),
  created_by: text(100).optional().describe('not used: the creator is the caller'),
  due_date: moment.optional(),
  estimated_hours: hours.optional(),
  actual_hours: hours.optional(),
  outcome: z.enum(OUTCOMES).optional(),
  error_message: text(5_000).optional(),
  resolution: text(5_000).optional(),
  feedback_rating: z.int().min(1).max(5).optional(),
  feedback_notes: text(5_000).optional(),
  retry_count: z.int().min(0).max(MAX_RETRIES).optional(),
  completed_at: moment.optional().describe('default: now, for a task that becomes done'),
  tags: z.array(text(100).min(1)).max(50).optional(),
  metadata: metadata.optional(),
});
export type CreateTask = z.infer<typeof createTaskBody>;

export const updateTaskBody = createTaskBody.partial().extend({
  project_id: idNumber.optional().describe('an active project; the task gets its next ticket number'),
  status: taskStatus.optional().describe('done needs an approving quality review by aegis'),
  assigned_to: text(100).normalize('NFC').optional().describe('name of an agent or a user; empty: unassigned'),
});
export type UpdateTask = z.infer<typeof updateTaskBody>;

export const taskResponse = z.object({ task: taskSchema });
export const updatedTaskResponse = taskResponse.extend({
  unchanged: z.literal(true).optional().describe('the request contained no field to change'),
});

/** A request may name at most this many tasks. */
const MAX_BULK = 100;

export const bulkStatusBody = z.object({
  tasks: z
    .array(z.object({ id: idNumber, status: taskStatus }))
    .min(1)
    .max(MAX_BULK),
});
export type BulkStatus = z.infer<typeof bulkStatusBody>;
export const bulkStatusResponse = z.object({
  success: z.literal(true),
  updated: z.int().describe('tasks that exist and now have the requested status'),
});

export const taskDeletedResponse = z.object({ success: z.literal(true) });
