/** Scheduled jobs that admins created, and their runs. Stream: `cron`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

const name = z.string();

export const cronJobAdded = defineEvent({
  type: 'CronJobAdded',
  doc: 'A scheduled job was created. It replaces one of the same name.',
  schema: z.object({
    name,
    /** Cron’s five fields. */
    schedule: z.string(),
    /** One of the scheduled tasks of the service, or the text of a task. */
    command: z.string(),
    enabled: z.boolean(),
    /** IANA name; missing: the time zone of the service. */
    timezone: z.string().optional(),
    /** Runs start with a delay of up to this many seconds, always the same for one job. */
    stagger_seconds: z.int().positive().optional(),
    /**
     * Workspace and agent of the task for the text; null: the queue. Missing: it runs a task of the service. `agent_id`:
     * absent if no agent had the name.
     */
    task: z
      .object({
        workspace: z.int().positive(),
        agent: z.string().nullable(),
        agent_id: z.int().positive().optional(),
      })
      .optional(),
  }),
});

export const cronJobAssigned = defineEvent({
  type: 'CronJobAssigned',
  doc: 'The agent for which a scheduled job creates tasks has another name.',
  schema: z.object({ name, agent: z.string() }),
});

export const cronJobToggled = defineEvent({
  type: 'CronJobToggled',
  doc: 'A scheduled job was enabled or disabled.',
  schema: z.object({ name, enabled: z.boolean() }),
});

export const cronJobRemoved = defineEvent({
  type: 'CronJobRemoved',
  doc: 'A scheduled job was deleted, with its runs.',
  schema: z.object({ name }),
});

export const cronRunStarted = defineEvent({
  type: 'CronRunStarted',
  doc: 'A run of a job began, on schedule or on request. Only the process that appends this event executes the run.',
  schema: z.object({
    name,
    /** Counted from 1 for each job. */
    run: z.int().positive(),
    /** The minute that was due, Unix seconds; null: run on request. */
    due_at: z.int().nullable(),
    /** The due minute before it, Unix seconds; null: none, or run on request. */
    previous_due_at: z.int().nullable(),
    /** How late the run began, seconds, if its time came while no worker was running. */
    late_by: z.int().positive().optional(),
    /** Id of the only task that this run creates: the process that completes the run creates it, unless it exists. */
    task_id: z.int().positive().optional(),
  }),
});

export const cronRunEnded = defineEvent({
  type: 'CronRunEnded',
  doc: 'A run of a job ended.',
  schema: z.object({
    name,
    run: z.int().positive(),
    ok: z.boolean(),
    /** The result, or why the run failed. */
    message: z.string(),
    duration_ms: z.int().nonnegative(),
  }),
});
