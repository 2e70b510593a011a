/** Scheduled jobs that admins make. A job names one of the scheduled tasks of the service, never anything else. */
import {
  CRON_STREAM,
  type CronState,
  checkJob,
  cronDecider,
  decideAdd,
  decideRemove,
  decideToggle,
  type RunCommand,
  runIfDue,
  triggerJob,
} from '../../../commands/admin/cron.ts';
import type { CommandContext } from '../../../commands/handler.ts';
import { jobHistory, jobLogs, listJobs } from '../../../queries/admin/cron.ts';
import { type CronBody, cronAnswer, cronBody, cronDoneAnswer, cronQuery } from '../../../shared/contract/admin/cron.ts';
import { splitZone } from '../../../shared/cron.ts';
import { invalid, notFound } from '../../../shared/errors.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import { frontOf } from '../../../shared/storable.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

/** @param where the field or query parameter that names the job */
const required = (name: string | undefined, where: string): string => {
  if (name === undefined || name === '') throw invalid(`Job ID required: send the name of the job as ${where}.`);
  return name;
};

const read = defineRoute({
  method: 'get',
  path: '/api/cron',
  tag: 'Admin',
  summary: 'List scheduled jobs, or the log or the history of one',
  access: 'admin',
  shared: 'cron',
  scope: 'deployment',
  query: cronQuery,
  refuses: [404],
  responses: { 200: { description: 'Jobs, a log or a history', schema: cronAnswer } },
  async handle({ query, services: { reads, settings, now } }) {
    const name = query.job ?? query.jobId;
    if (query.action === 'logs') return { body: { logs: await jobLogs(reads, required(name, '?job=')) } };
    if (query.action === 'history')
      return { body: await jobHistory(reads, required(query.jobId ?? query.job, '?jobId='), query.page, query.query) };
    return { body: { jobs: await listJobs(reads, settings.timeZone, now()) } };
  },
});

/** What jobs can run: every scheduled task but the one that runs the jobs. */
const commandsOf = ({ scheduler }: Services): readonly string[] => scheduler.ids.filter((id) => id !== 'cron');

type Decide = (state: CronState) => EventDraft[];
const execute = ({ commands }: Services, command: CommandContext, decide: Decide) =>
  commands.execute(cronDecider, CRON_STREAM, command, decide);

const runBy =
  ({ scheduler }: Services): RunCommand =>
  async (command) => {
    const { ok, message } = await scheduler.runNow(command);
    if (!ok) throw new Error(message);
    return message;
  };

async function trigger(services: Services, context: CommandContext, name: string, mode: CronBody['mode']) {
  const { commands, settings, now } = services;
  const run = runBy(services);
  const result =
    mode === 'force'
      ? await triggerJob(commands, context, name, run, now)
      : await runIfDue(commands, context, name, { run, zone: settings.timeZone, now });
  if (!result) return { success: true as const, ran: false, message: 'The job is not due yet.' };
  const status = result.ok ? ('success' as const) : ('error' as const);
  return { success: true as const, ran: true, status, message: result.message };
}

/** A name that no job has: `x (copy)`, `x (copy 2)` and so on. */
function copyOf({ jobs }: CronState, name: string): string {
  const taken = new Set(jobs.map((job) => job.name));
  for (let nth = 1; ; nth++) {
    const copy = `${frontOf(name, 180)} (copy${nth === 1 ? '' : ` ${nth}`})`;
    if (!taken.has(copy)) return copy;
  }
}

const act = defineRoute({
  method: 'post',
  path: '/api/cron',
  tag: 'Admin',
  summary: 'Add, switch, trigger, clone or remove a scheduled job',
  description:
    'A job runs one of the scheduled tasks of the service (`command`) by a cron schedule of five fields, in the time zone `TZ` or in one of its own (`timezone`). `staggerSeconds` keeps jobs of one schedule from all beginning at once. Each due time has one run, whichever process does it; times missed while no worker was running are made up for once, when they were at most 15 minutes ago. `trigger` runs a job now and waits up to 10 s for its end.',
  access: 'admin',
  shared: 'cron',
  scope: 'deployment',
  body: cronBody,
  refuses: [404, 409],
  responses: { 200: { description: 'Done', schema: cronDoneAnswer } },
  async handle({ body, services, command }) {
    const { action } = body;
    const name = body.name ?? body.jobId ?? body.jobName;
    if (action === 'add') {
      const { command: task, enabled = true, staggerSeconds } = body;
      if (!name || !body.schedule || !task) throw invalid('name, schedule and command are required.');
      const { schedule, zone } = splitZone(body.schedule);
      const job = { name, schedule, command: task, enabled, timeZone: body.timezone ?? zone, staggerSeconds };
      checkJob(job, commandsOf(services));
      await execute(services, command, (state) => decideAdd(state, job));
      return { body: { success: true, enabled } };
    }
    const selected = required(name, 'name');
    if (action === 'trigger') return { body: await trigger(services, command, selected, body.mode) };
    if (action === 'remove') {
      await execute(services, command, (state) => decideRemove(state, selected));
      return { body: { success: true } };
    }
    if (action === 'toggle') {
      let enabled = false;
      await execute(services, command, (state) => {
        enabled = body.enabled ?? !state.jobs.find((job) => job.name === selected)?.enabled;
        return decideToggle(state, selected, enabled);
      });
      return { body: { success: true, enabled } };
    }
    let clonedName = '';
    await execute(services, command, (state) => {
      const job = state.jobs.find((one) => one.name === selected);
      if (!job) throw notFound('Scheduled job');
      clonedName = copyOf(state, selected);
      const { schedule, command: task, enabled, timeZone, staggerSeconds } = job;
      return decideAdd(state, { name: clonedName, schedule, command: task, enabled, timeZone, staggerSeconds });
    });
    return { body: { success: true, clonedName } };
  },
});

export const cronRoutes: readonly Route[] = [read, act];
