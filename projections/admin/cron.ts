/** Scheduled jobs of the deployment and the latest runs of each. */
import {
  cronJobAdded,
  cronJobAssigned,
  cronJobRemoved,
  cronJobToggled,
  cronRunEnded,
  cronRunStarted,
} from '../../shared/events/admin/cron.ts';
import { change, defineProjection, defineTable, on, remove, update } from '../projection.ts';

/** Number of runs that are kept per job. */
export const KEPT_RUNS = 200;

export const cronJobsTable = defineTable(
  'cron_jobs',
  {
    name: 'text',
    schedule: 'text',
    command: 'text',
    enabled: 'boolean',
    /** Null: the time zone of the service. */
    time_zone: 'text?',
    stagger_seconds: 'int?',
    /** That gets the tasks. */
    agent: 'text?',
    /** Unix milliseconds. */
    last_run: 'bigint?',
    last_status: 'text?',
    last_error: 'text?',
    /** How late the last run began, seconds; null: not late. */
    last_late_by: 'int?',
  },
  { key: ['name'] },
);

export const cronRunsTable = defineTable(
  'cron_runs',
  {
    name: 'text',
    /** The number of the run modulo `KEPT_RUNS`: a new run replaces the oldest. */
    slot: 'int',
    run: 'bigint',
    status: 'text',
    message: 'text',
    /** Unix milliseconds. */
    started_at: 'bigint',
    duration_ms: 'bigint?',
    /** How late it began, seconds; null: not late. */
    late_by: 'int?',
  },
  { key: ['name', 'slot'], indexes: ['name, run'] },
);

const slotOf = (run: number): number => run % KEPT_RUNS;

export const cronProjection = defineProjection({
  name: 'cron',
  version: 1,
  tables: [cronJobsTable, cronRunsTable],
  handlers: [
    on(cronJobAdded, ({ data: { name, schedule, command, enabled, timezone, stagger_seconds = null, task } }) => [
      change(cronJobsTable, { name }, (row) => ({
        name,
        schedule,
        command,
        enabled,
        time_zone: timezone ?? null,
        stagger_seconds,
        agent: task?.agent ?? null,
        last_run: row?.last_run ?? null,
        last_status: row?.last_status ?? null,
        last_error: row?.last_error ?? null,
        last_late_by: row?.last_late_by ?? null,
      })),
    ]),
    on(cronJobToggled, ({ data: { name, enabled } }) => [
      update(cronJobsTable, { name }, (row) => ({ ...row, enabled })),
    ]),
    on(cronJobAssigned, ({ data: { name, agent } }) => [update(cronJobsTable, { name }, (row) => ({ ...row, agent }))]),
    on(cronJobRemoved, ({ data: { name } }) => [
      remove(cronJobsTable, { name }),
      ...Array.from({ length: KEPT_RUNS }, (_, slot) => remove(cronRunsTable, { name, slot })),
    ]),
    on(cronRunStarted, ({ data: { name, run, late_by = null }, meta: { at } }) => [
      change(cronRunsTable, { name, slot: slotOf(run) }, () => ({
        name,
        slot: slotOf(run),
        run,
        status: 'running',
        message: '',
        started_at: at,
        duration_ms: null,
        late_by,
      })),
      update(cronJobsTable, { name }, (row) => ({
        ...row,
        last_run: at,
        last_status: 'running',
        last_late_by: late_by,
      })),
    ]),
    on(cronRunEnded, ({ data: { name, run, ok, message, duration_ms } }) => {
      const statusOf = (lateBy: number | null) => (ok ? (lateBy === null ? 'success' : 'late') : 'error');
      return [
        update(cronRunsTable, { name, slot: slotOf(run) }, (row) =>
          row.run === run ? { ...row, status: statusOf(row.late_by), message, duration_ms } : row,
        ),
        update(cronJobsTable, { name }, (row) => ({
          ...row,
          last_status: statusOf(row.last_late_by),
          last_error: ok ? null : message,
        })),
      ];
    }),
  ],
});
