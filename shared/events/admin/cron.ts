/** Scheduled jobs that admins made, and their runs. Stream: `cron`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

const name = z.string();

export const cronJobAdded = defineEvent({
  type: 'CronJobAdded',
  version: 2,
  doc: 'A job runs by a schedule from now on. One of the same name is replaced.',
  schema: z.object({
    name,
    /** Cron’s five fields. */
    schedule: z.string(),
    /** One of the scheduled tasks of the service, or the text of a task. */
    command: z.string(),
    enabled: z.boolean(),
    /** IANA name; missing: that of the service. */
    timezone: z.string().optional(),
    /** Runs begin up to so many seconds late, always the same for one job. */
    stagger_seconds: z.int().positive().optional(),
    /** Where the text becomes a task, and for which agent; null: for the queue. Missing: a task of the service is run. */
    task: z.object({ workspace: z.int().positive(), agent: z.string().nullable() }).optional(),
  }),
});

export const cronJobToggled = defineEvent({
  type: 'CronJobToggled',
  version: 1,
  doc: 'A job was switched on or off.',
  schema: z.object({ name, enabled: z.boolean() }),
});

export const cronJobRemoved = defineEvent({
  type: 'CronJobRemoved',
  version: 1,
  doc: 'A job is gone, and its runs with it.',
  schema: z.object({ name }),
});

export const cronRunStarted = defineEvent({
  type: 'CronRunStarted',
  version: 2,
  doc: 'A run of a job began, because its time had come or because somebody asked for it. Whoever appends this event does the run; nobody else does.',
  schema: z.object({
    name,
    /** Counted from 1 for each job. */
    run: z.int().positive(),
    /** The minute that was due, Unix seconds; null: run on request. */
    due_at: z.int().nullable(),
    /** Of the task that this run makes, and no other: whoever finishes the run makes it, unless it is there. */
    task_id: z.int().positive().optional(),
  }),
});

export const cronRunEnded = defineEvent({
  type: 'CronRunEnded',
  version: 2,
  doc: 'A run of a job ended.',
  schema: z.object({
    name,
    run: z.int().positive(),
    ok: z.boolean(),
    /** What it did, or why it failed. */
    message: z.string(),
    duration_ms: z.int().nonnegative(),
  }),
});

export const cronEvents = [cronJobAdded, cronJobToggled, cronJobRemoved, cronRunStarted, cronRunEnded];
