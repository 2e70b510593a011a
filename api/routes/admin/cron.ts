/** Scheduled jobs that admins create. A job runs a scheduled task of the service, or its text becomes a task. */
import {
  CRON_STREAM,
  type CronState,
  type CronWork,
  checkJob,
  cloneJob,
  cronDecider,
  decideAdd,
  decideRemove,
  runIfDue,
  toggleJob,
  triggerJob,
} from '../../../commands/admin/cron.ts';
import { agentInLog } from '../../../commands/agents/names.ts';
import type { CommandContext } from '../../../commands/handler.ts';
import { jobHistory, jobLogs, listJobs } from '../../../queries/admin/cron.ts';
import { projectDirectory } from '../../../queries/projects/projects.ts';
import {
  type CronBody,
  cronBody,
  cronDoneResponse,
  cronQuery,
  cronResponse,
} from '../../../shared/contract/admin/cron.ts';
import { splitZone } from '../../../shared/cron.ts';
import { invalid } from '../../../shared/errors.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import type { RequestContext } from '../../http/context.ts';
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
  summary: 'List scheduled jobs, the log of one or of all, or the history of one',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'all', prompts: 'none' },
  scope: 'deployment',
  query: cronQuery,
  refuses: [404],
  responses: { 200: { description: 'Jobs, a log or a history', schema: cronResponse } },
  async respond({ query, services: { reads, settings, now } }) {
    const name = query.job ?? query.jobId;
    if (query.action === 'logs') return { logs: await jobLogs(reads, name || undefined) };
    if (query.action === 'history')
      return jobHistory(reads, required(query.jobId ?? query.job, '?jobId='), query.page, query.query);
    return { jobs: await listJobs(reads, settings.timeZone, now()) };
  },
});

/** Whether a command is a scheduled task that jobs may run: any except the one that runs the jobs. */
const isTask = ({ scheduler }: Services, command: string): boolean =>
  command !== 'cron' && scheduler.ids.includes(command);

type Decide = (state: CronState) => EventDraft[];
const execute = ({ commands }: Services, command: CommandContext, decide: Decide) =>
  commands.execute(cronDecider, CRON_STREAM, command, decide);

/** Reads as of the arrival of the request, so that they do not wait for events that this request appended. */
const workOf = ({ commands, reads, scheduler, now }: Services, { startedAt }: RequestContext): CronWork => ({
  commands,
  projects: projectDirectory(reads.at({ since: startedAt })),
  now,
  async run(command) {
    const { ok, message } = await scheduler.runNow(command);
    if (!ok) throw new Error(message);
    return message;
  },
});

async function trigger(
  work: CronWork,
  services: Services,
  command: CommandContext,
  name: string,
  mode: CronBody['mode'],
) {
  const result =
    mode === 'force'
      ? await triggerJob(work, command, name)
      : await runIfDue(work, command, name, services.settings.timeZone);
  if (!result) return { success: true as const, ran: false, message: 'The job is not due yet.' };
  const status = result.ok ? ('success' as const) : ('error' as const);
  return { success: true as const, ran: true, status, message: result.message };
}

const act = defineRoute({
  method: 'post',
  path: '/api/cron',
  summary: 'Add, switch, trigger, clone or remove a scheduled job',
  description:
    'A job runs one of the scheduled tasks of the service (`command`) by a cron schedule of five fields, in the time zone `TZ` or in one of its own (`timezone`). Any other text becomes a task in the workspace of the caller each time that the job is due: its title is the name of the job, its description the text, and it is for the agent named in `agentId`, else for the queue. `staggerSeconds` keeps jobs of one schedule from all beginning at once. Each due time has one run, whichever process does it; times missed while no worker was running are made up for once, when they were at most 15 minutes ago. `trigger` runs a job now and waits up to 10 s for its end.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'screened' },
  limit: 'none',
  scope: 'deployment',
  body: cronBody,
  refuses: [404, 409],
  responses: { 200: { description: 'Done', schema: cronDoneResponse } },
  async respond({ body, identity, services, command, context }) {
    const { action } = body;
    const name = body.name ?? body.jobId ?? body.jobName;
    if (action === 'add') {
      const { command: task, enabled = true, staggerSeconds } = body;
      if (!name || !body.schedule || !task) throw invalid('name, schedule and command are required.');
      const { schedule, zone } = splitZone(body.schedule);
      const agent = body.agentId?.trim() || null;
      const isText = !isTask(services, task);
      if (!isText && agent !== null) throw invalid(`agentId: ${task} is a task of the service and has no agent`);
      const { workspace } = identity;
      const known = agent === null ? undefined : await agentInLog(services.commands, workspace, { name: agent });
      const job = {
        name,
        schedule,
        command: task,
        enabled,
        timezone: body.timezone ?? zone,
        stagger_seconds: staggerSeconds,
        ...(isText && { task: { workspace, agent, agent_id: known?.id } }),
      };
      checkJob(job);
      await execute(services, command, (state) => decideAdd(state, job));
      return { success: true, enabled };
    }
    const selected = required(name, 'name');
    if (action === 'trigger') return trigger(workOf(services, context), services, command, selected, body.mode);
    if (action === 'remove') {
      await execute(services, command, (state) => decideRemove(state, selected));
      return { success: true };
    }
    if (action === 'toggle')
      return { success: true, enabled: await toggleJob(services.commands, command, selected, body.enabled) };
    return { success: true, clonedName: await cloneJob(services.commands, command, selected) };
  },
});

export const cronRoutes: readonly Route[] = [read, act];
