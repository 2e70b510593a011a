/**
 * Scheduled jobs. All jobs share one stream. A process claims a run on it before the run starts, so each due time has
 * one run, however many processes check the schedule.
 *
 * A job runs a scheduled task of the service, or its text becomes a task for an agent. The claim then reserves the id
 * of that task, whose stream must not exist yet: if a process dies between the two, another process finds the claim and
 * creates that task, once.
 */

import type { ProjectDirectory } from '../../queries/projects/projects.ts';
import { cronProblem, dueAfter, isTimeZone, latestDue, minuteOf, planProblem, staggerOf } from '../../shared/cron.ts';
import { AppError, conflict, invalid, notFound } from '../../shared/errors.ts';
import {
  cronJobAdded,
  cronJobAssigned,
  cronJobRemoved,
  cronJobToggled,
  cronRunEnded,
  cronRunStarted,
} from '../../shared/events/admin/cron.ts';
import { type EventDraft, type EventOf, firstOf } from '../../shared/events/define.ts';
import { DEFAULT_TENANT } from '../../shared/events/metadata.ts';
import { taskCreated } from '../../shared/events/tasks/tasks.ts';
import { frontOf } from '../../shared/storable.ts';
import { MINUTE, seconds } from '../../shared/time.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { takeTicket } from '../projects/tickets.ts';
import { taskDecider, taskStream } from '../tasks/tasks.ts';
import { mustBeThere } from '../workspaces/workspaces.ts';

export interface CronJob {
  readonly name: string;
  readonly schedule: string;
  readonly command: string;
  readonly enabled: boolean;
  /** IANA name; undefined: the time zone of the service. */
  readonly timezone?: string | undefined;
  /** Runs start with a delay of up to this many seconds. */
  readonly stagger_seconds?: number | undefined;
  /** Workspace and agent of the task for the job's text; null: the queue. Undefined: it runs a task of the service. */
  readonly task?:
    | { readonly workspace: number; readonly agent: string | null; readonly agent_id?: number | undefined }
    | undefined;
  /** Up to this time it is not due, Unix seconds: when it was added or enabled. */
  readonly since: number;
  /** The due minutes that have had a run, oldest first. */
  readonly ran: readonly Ran[];
  /** Runs so far. */
  readonly runs: number;
  readonly running: Running | null;
}

/** Consecutive due minutes that have had a run, Unix seconds. */
interface Ran {
  readonly from: number;
  readonly to: number;
}

/** The run in progress. */
interface Running {
  readonly run: number;
  /** Since when, Unix ms. */
  readonly at: number;
  /** Unix seconds; null: run on request. */
  readonly due_at: number | null;
  /** Id of the task that the run creates. */
  readonly task_id?: number | undefined;
}

export interface CronState {
  readonly jobs: readonly CronJob[];
}

export const CRON_STREAM = 'cron';
export const MAX_JOBS = 100;
/** A run that begins this much after its time is late, seconds: longer than a restart takes. */
const LATE = 5 * MINUTE;
/** Ranges of due minutes that are remembered per job; each is begun by a missed run or a clock that was set back. */
const MAX_RAN = 20;
/** A run that has not ended after this time counts as dead, with its process, milliseconds. */
const GONE_MS = 10 * MINUTE * 1_000;
const MAX_MESSAGE = 1_000;

/** Adds a run, to the range of the due minute before it if that has had one. */
function withRun(ran: readonly Ran[], dueAt: number, previous: number | null): readonly Ran[] {
  const before = ran.find(({ from, to }) => previous !== null && from <= previous && previous <= to);
  const others = ran.filter((one) => one !== before);
  return [...others, { from: before?.from ?? dueAt, to: Math.max(before?.to ?? dueAt, dueAt) }].slice(-MAX_RAN);
}

const hasRun = ({ ran }: CronJob, dueAt: number): boolean => ran.some(({ from, to }) => from <= dueAt && dueAt <= to);

const changed = ({ jobs }: CronState, name: string, change: (job: CronJob) => CronJob): CronState => ({
  jobs: jobs.map((job) => (job.name === name ? change(job) : job)),
});

export const cronDecider = defineDecider<CronState>({
  kind: 'list of scheduled jobs',
  initial: { jobs: [] },
  snapshotVersion: 3,
  sizeOf: ({ jobs }) => jobs.reduce((sum, { command }) => sum + command.length + 300, 0),
  folds: [
    on(cronJobAdded, ({ jobs }, { data, at }) => ({
      jobs: [
        ...jobs.filter(({ name }) => name !== data.name),
        {
          ...{ ...data, since: seconds(at), running: null, ran: [] },
          runs: jobs.find(({ name }) => name === data.name)?.runs ?? 0,
        },
      ],
    })),
    on(cronJobToggled, (state, { data, at }) =>
      changed(state, data.name, (job) => ({ ...job, enabled: data.enabled, since: seconds(at) })),
    ),
    on(cronJobAssigned, (state, { data: { name, agent } }) =>
      changed(state, name, (job) => ({ ...job, task: job.task && { ...job.task, agent } })),
    ),
    on(cronJobRemoved, ({ jobs }, { data }) => ({ jobs: jobs.filter(({ name }) => name !== data.name) })),
    on(cronRunStarted, (state, { data, at }) =>
      changed(state, data.name, (job) => ({
        ...job,
        runs: data.run,
        running: { run: data.run, at, due_at: data.due_at, task_id: data.task_id },
        ran: data.due_at === null ? job.ran : withRun(job.ran, data.due_at, data.previous_due_at),
      })),
    ),
    on(cronRunEnded, (state, { data }) =>
      changed(state, data.name, (job) => (job.running?.run === data.run ? { ...job, running: null } : job)),
    ),
  ],
});

/** @throws AppError 404 */
function jobOf({ jobs }: CronState, name: string): CronJob {
  const job = jobs.find((one) => one.name === name);
  if (!job) throw notFound('Scheduled job');
  return job;
}

// --- Decisions --------------------------------------------------------------------------------------------------------

export type NewJob = Omit<CronJob, 'since' | 'ran' | 'runs' | 'running'>;

/** @throws AppError 400 */
export function checkJob({ schedule, timezone: timeZone }: NewJob): void {
  const problem = cronProblem(schedule);
  if (problem !== undefined) throw invalid(`schedule: ${problem}`);
  if (timeZone !== undefined && !isTimeZone(timeZone))
    throw invalid(`timezone: must be the name of a time zone, such as Europe/Berlin; ${timeZone} is not`);
}

/** @throws AppError 409 when there are too many */
export function decideAdd({ jobs }: CronState, job: NewJob): EventDraft[] {
  if (jobs.length >= MAX_JOBS && !jobs.some(({ name }) => name === job.name))
    throw conflict(`There are ${MAX_JOBS} scheduled jobs already, which is the limit; remove one first.`);
  return [cronJobAdded.draft(job)];
}

/** @param enabled default: the opposite of the current value @throws AppError 404 */
export function decideToggle(state: CronState, name: string, enabled?: boolean): EventDraft[] {
  const job = jobOf(state, name);
  const next = enabled ?? !job.enabled;
  return next === job.enabled ? [] : [cronJobToggled.draft({ name, enabled: next })];
}

/** A name that no job has: `x (copy)`, `x (copy 2)` and so on. */
function copyOf({ jobs }: CronState, name: string): string {
  const taken = new Set(jobs.map((job) => job.name));
  for (let nth = 1; ; nth++) {
    const copy = `${frontOf(name, 180)} (copy${nth === 1 ? '' : ` ${nth}`})`;
    if (!taken.has(copy)) return copy;
  }
}

/** @throws AppError 404, 409 when there are too many */
export function decideClone(state: CronState, name: string): EventDraft[] {
  const { schedule, command, enabled, timezone, stagger_seconds, task } = jobOf(state, name);
  const clonedName = copyOf(state, name);
  return decideAdd(state, { name: clonedName, schedule, command, enabled, timezone, stagger_seconds, task });
}

/** @throws AppError 404 */
export const decideRemove = (state: CronState, name: string): EventDraft[] => [
  cronJobRemoved.draft({ name: jobOf(state, name).name }),
];

/** A run that was not due. */
const ON_REQUEST = { due_at: null, previous_due_at: null };

/** A due minute of a job; times in Unix seconds. */
export interface DueRun {
  readonly due_at: number;
  /** The due minute before it; null: none. */
  readonly previous_due_at: number | null;
  /** If its time came while no worker was running. */
  readonly late_by?: number;
}

/** Whether a due minute is after the job was added or enabled, and has had no run. `now`: Unix seconds */
function isOpen(job: CronJob, dueAt: number, now: number): boolean {
  const latest = job.ran.at(-1)?.to ?? 0;
  // Ahead of now, both are from before the clock was set back.
  return !hasRun(job, dueAt) && dueAt > dueAfter(latest > now ? latest : job.since, now);
}

/**
 * The latest due minute if it has had no run, however long ago; undefined: none. `now`: Unix ms
 *
 * @param zone of jobs without a time zone
 */
export function dueOf(job: CronJob, zone: string, now: number): DueRun | undefined {
  const { name, schedule, enabled, timezone: timeZone = zone, stagger_seconds: staggerSeconds = 0 } = job;
  if (!enabled || planProblem(schedule, timeZone) !== undefined) return undefined;
  const at = seconds(now) - staggerOf(name, staggerSeconds);
  const until = minuteOf(at);
  const due = latestDue(schedule, timeZone, until);
  if (!isOpen(job, due, at)) return undefined;
  const previous = latestDue(schedule, timeZone, due - 1);
  const lateBy = at - due;
  return {
    due_at: due,
    previous_due_at: Number.isFinite(previous) ? previous : null,
    ...(lateBy > LATE && { late_by: lateBy }),
  };
}

/** Whether a run is in progress: one for a task until the task is created; others until they end or count as dead. */
const isRunning = ({ running }: CronJob, now: number): boolean =>
  running !== null && (running.task_id !== undefined || Math.abs(now - running.at) < GONE_MS);

/**
 * Claims the run of a due minute; no event when it is already claimed, or the job is deleted, disabled or still
 * running.
 *
 * @param taskId reserved for the task that the run creates
 */
export function decideDueRun(
  { jobs }: CronState,
  name: string,
  { task_id: taskId, ...due }: DueRun & { readonly task_id?: number | undefined },
  now: number,
): EventDraft[] {
  const job = jobs.find((one) => one.name === name);
  if (!job?.enabled || !isOpen(job, due.due_at, seconds(now)) || isRunning(job, now)) return [];
  return claimed(job, due, taskId);
}

/** @throws AppError 404; 409 while it is running */
export function decideAskedRun(state: CronState, name: string, now: number, taskId?: number): EventDraft[] {
  const job = jobOf(state, name);
  if (isRunning(job, now)) throw conflict('The job is running; wait until it has ended.');
  return claimed(job, ON_REQUEST, taskId);
}

/** No event if the job is no longer the one for which the id was reserved. */
function claimed(job: CronJob, due: DueRun | typeof ON_REQUEST, taskId: number | undefined): EventDraft[] {
  const { name, runs, running, task } = job;
  if ((task === undefined) !== (taskId === undefined)) return [];
  return [
    ...(running
      ? [cronRunEnded.draft({ name, run: running.run, ok: false, message: 'It never ended.', duration_ms: GONE_MS })]
      : []),
    cronRunStarted.draft({ name, run: runs + 1, ...due, ...(taskId !== undefined && { task_id: taskId }) }),
  ];
}

/** No event when another process has ended the run. */
const decideEnd = ({ jobs }: CronState, ended: Parameters<typeof cronRunEnded.draft>[0]): EventDraft[] =>
  jobs.some(({ name, running }) => name === ended.name && running?.run === ended.run)
    ? [cronRunEnded.draft(ended)]
    : [];

// --- Commands ---------------------------------------------------------------------------------------------------------

export interface CronWork {
  readonly commands: Commands;
  readonly projects: ProjectDirectory;
  /** Runs a scheduled task of the service. @returns a message with the result @throws when it fails */
  readonly run: (command: string) => Promise<string>;
  /** Unix ms. */
  readonly now: () => number;
}

export interface RunResult {
  readonly ok: boolean;
  readonly message: string;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Executes a claimed run and records its result. @throws what temporarily prevents the creation of its task */
async function perform(work: CronWork, context: CommandContext, job: CronJob): Promise<RunResult> {
  const { commands } = work;
  const { name, command, running } = job;
  if (!running) return { ok: false, message: 'It was not run.' };
  const begun = performance.now();
  const done = running.task_id === undefined ? work.run(command) : makeTask(work, context, job, running.task_id);
  const { ok, message: said } = await done.then(
    (message): RunResult => ({ ok: true, message }),
    (error: unknown): RunResult => {
      // An error that is not the request's fault, such as an unreachable store, is retried by the next process.
      if (running.task_id !== undefined && !(error instanceof AppError && error.status < 500)) throw error;
      return { ok: false, message: messageOf(error) };
    },
  );
  const message = frontOf(said.replace(/[\0\p{Surrogate}]/gu, '\uFFFD'), MAX_MESSAGE);
  const durationMs = Math.round(performance.now() - begun);
  await commands.execute(cronDecider, CRON_STREAM, { origin: context.origin }, (state) =>
    decideEnd(state, { name, run: running.run, ok, message, duration_ms: durationMs }),
  );
  return { ok, message };
}

/** Creates the task with the reserved id, unless it was already created; it may even have been deleted since. */
async function makeTask(
  { commands, projects }: CronWork,
  { origin }: CommandContext,
  { name, schedule, command, task, running }: CronJob,
  taskId: number,
): Promise<string> {
  const { workspace = origin.workspace, agent = null, agent_id: agentId } = task ?? {};
  const made = `Task ${taskId} was made.`;
  const stream = taskStream(workspace, taskId);
  if ((await commands.load(taskDecider, stream)).lastAt > 0) return made;
  await mustBeThere(commands, { tenant: DEFAULT_TENANT, workspace });
  const context = { origin: { ...origin, tenant: DEFAULT_TENANT, workspace } };
  const fields = {
    ...taskDecider.initial.task,
    ...(await takeTicket(commands, context, projects, undefined)).ticket,
    title: name,
    description: command,
    assigned_to: agent,
    ...(agentId !== undefined && { assignee_id: agentId }),
    status: agent === null ? 'inbox' : 'assigned',
    created_by: 'scheduler',
    metadata: { cron_job: name, cron_due_at: running?.due_at ?? null },
  };
  await commands.execute(taskDecider, stream, context, ({ id }) =>
    id !== 0 ? [] : [taskCreated.draft({ task_id: taskId, task: fields, source: 'recurrence', cron: schedule })],
  );
  return made;
}

/** Switches a job. @param enabled default: the opposite of the current value @returns the value @throws AppError 404 */
export async function toggleJob(
  commands: Commands,
  context: CommandContext,
  name: string,
  enabled?: boolean,
): Promise<boolean> {
  const { events } = await commands.execute(cronDecider, CRON_STREAM, context, (state) =>
    decideToggle(state, name, enabled),
  );
  // Without an event, the job has the wanted value already.
  return firstOf(events, cronJobToggled)?.data.enabled ?? enabled === true;
}

/** @returns the name of the copy @throws AppError 404, 409 when there are too many */
export async function cloneJob(commands: Commands, context: CommandContext, name: string): Promise<string> {
  const { events } = await commands.execute(cronDecider, CRON_STREAM, context, (state) => decideClone(state, name));
  return (firstOf(events, cronJobAdded) as EventOf<typeof cronJobAdded>).data.name;
}

/** Ends a run whose process died before it created the task. @returns the job afterwards @throws AppError 404 */
async function finished(work: CronWork, context: CommandContext, name: string): Promise<CronJob> {
  const current = async () => jobOf((await work.commands.load(cronDecider, CRON_STREAM)).state, name);
  const job = await current();
  if (job.running?.task_id === undefined) return job;
  await perform(work, context, job);
  return current();
}

/** Claims a run. @returns the job with that run; undefined: another process has claimed it, or there is none */
async function claim(
  { commands }: CronWork,
  context: CommandContext,
  job: CronJob,
  decide: (state: CronState, taskId: number | undefined) => EventDraft[],
): Promise<CronJob | undefined> {
  const taskId = job.task && (await commands.counters.take('task'));
  const { events } = await commands.execute(cronDecider, CRON_STREAM, { origin: context.origin }, (state) =>
    decide(state, taskId),
  );
  const started = events.find(({ type }) => type === cronRunStarted.type);
  if (!started) return undefined;
  const { run, due_at } = started.data as EventOf<typeof cronRunStarted>['data'];
  return { ...job, running: { run, due_at, task_id: taskId, at: started.meta.at } };
}

/** Runs a job on request. @throws AppError 404, 409 */
export async function triggerJob(work: CronWork, context: CommandContext, name: string): Promise<RunResult> {
  const job = await finished(work, context, name);
  const claimed = await claim(work, context, job, (state, taskId) => decideAskedRun(state, name, work.now(), taskId));
  return claimed ? perform(work, context, claimed) : { ok: false, message: 'It was not run.' };
}

/** Runs a job if it is due. @returns undefined when it is not due @throws AppError 404 */
export async function runIfDue(
  work: CronWork,
  context: CommandContext,
  name: string,
  zone: string,
): Promise<RunResult | undefined> {
  const job = await finished(work, context, name);
  const due = dueOf(job, zone, work.now());
  if (due === undefined) return undefined;
  const claimed = await claim(work, context, job, (state, taskId) =>
    decideDueRun(state, name, { ...due, task_id: taskId }, work.now()),
  );
  return claimed && perform(work, context, claimed);
}
