/**
 * Scheduled jobs. All of them are one stream, in which whoever does a run claims it first: each due time has one run,
 * however many processes look at the clock.
 */
import { cronProblem, dueMinutes, isTimeZone, minuteOf, staggerOf } from '../../shared/cron.ts';
import { conflict, invalid, notFound } from '../../shared/errors.ts';
import {
  cronJobAdded,
  cronJobRemoved,
  cronJobToggled,
  cronRunEnded,
  cronRunStarted,
} from '../../shared/events/admin/cron.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { frontOf } from '../../shared/storable.ts';
import { MINUTE, seconds } from '../../shared/time.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';

export interface CronJob {
  readonly name: string;
  readonly schedule: string;
  readonly command: string;
  readonly enabled: boolean;
  /** IANA name; undefined: that of the service. */
  readonly timeZone?: string | undefined;
  /** Runs begin up to so many seconds late. */
  readonly staggerSeconds?: number | undefined;
  /** Times before this one are no longer due, Unix seconds. */
  readonly since: number;
  /** Runs so far. */
  readonly runs: number;
  /** The run that has not ended, and since when, Unix ms. */
  readonly running: { readonly run: number; readonly at: number } | null;
}

export interface CronState {
  readonly jobs: readonly CronJob[];
}

export const CRON_STREAM = 'cron';
export const MAX_JOBS = 100;
/** What was due while nobody was there is made up for when it was at most this long ago, seconds. */
const LOOK_BACK = 15 * MINUTE;
/** A run that has not ended after this has died with its process, milliseconds. */
const GONE_MS = 10 * MINUTE * 1_000;
const MAX_MESSAGE = 1_000;

const changed = ({ jobs }: CronState, name: string, change: (job: CronJob) => CronJob): CronState => ({
  jobs: jobs.map((job) => (job.name === name ? change(job) : job)),
});

export const cronDecider = defineDecider<CronState>({
  kind: 'list of scheduled jobs',
  initial: { jobs: [] },
  snapshotVersion: 1,
  folds: [
    on(cronJobAdded, ({ jobs }, { data, at }) => ({
      jobs: [
        ...jobs.filter(({ name }) => name !== data.name),
        { ...data, since: seconds(at), runs: jobs.find(({ name }) => name === data.name)?.runs ?? 0, running: null },
      ],
    })),
    on(cronJobToggled, (state, { data, at }) =>
      changed(state, data.name, (job) => ({ ...job, enabled: data.enabled, since: Math.max(job.since, seconds(at)) })),
    ),
    on(cronJobRemoved, ({ jobs }, { data }) => ({ jobs: jobs.filter(({ name }) => name !== data.name) })),
    on(cronRunStarted, (state, { data, at }) =>
      changed(state, data.name, (job) => ({
        ...job,
        runs: data.run,
        running: { run: data.run, at },
        since: Math.max(job.since, data.dueAt ?? 0),
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

export type NewJob = Pick<CronJob, 'name' | 'schedule' | 'command' | 'enabled' | 'timeZone' | 'staggerSeconds'>;

/** @param commands those that there are @throws AppError 400 */
export function checkJob({ schedule, command, timeZone }: NewJob, commands: readonly string[]): void {
  const problem = cronProblem(schedule);
  if (problem !== undefined) throw invalid(`schedule: ${problem}`);
  if (timeZone !== undefined && !isTimeZone(timeZone))
    throw invalid(`timezone: must be the name of a time zone, such as Europe/Berlin; ${timeZone} is none`);
  if (!commands.includes(command)) throw invalid(`command: must be one of ${commands.join(', ')}`);
}

/** @throws AppError 409 when there are too many */
export function decideAdd({ jobs }: CronState, job: NewJob): EventDraft[] {
  if (jobs.length >= MAX_JOBS && !jobs.some(({ name }) => name === job.name))
    throw conflict(`There are ${MAX_JOBS} scheduled jobs already, which is the limit; remove one first.`);
  return [cronJobAdded.draft(job)];
}

/** @param enabled default: the opposite @throws AppError 404 */
export function decideToggle(state: CronState, name: string, enabled?: boolean): EventDraft[] {
  const job = jobOf(state, name);
  const next = enabled ?? !job.enabled;
  return next === job.enabled ? [] : [cronJobToggled.draft({ name, enabled: next })];
}

/** @throws AppError 404 */
export const decideRemove = (state: CronState, name: string): EventDraft[] => [
  cronJobRemoved.draft({ name: jobOf(state, name).name }),
];

/**
 * The last minute that is due and has had no run, Unix seconds; undefined: none. `now`: Unix ms
 *
 * @param zone of jobs that name none
 */
export function dueOf(job: CronJob, zone: string, now: number): number | undefined {
  const { name, schedule, enabled, since, timeZone = zone, staggerSeconds = 0 } = job;
  if (!enabled) return undefined;
  const until = minuteOf(seconds(now) - staggerOf(name, staggerSeconds));
  return dueMinutes(schedule, timeZone, Math.max(since, until - LOOK_BACK), until).at(-1);
}

/** Claims the run of a due minute; no event when it has been claimed or the job is gone, off or still running. */
export function decideDueRun({ jobs }: CronState, name: string, dueAt: number, now: number): EventDraft[] {
  const job = jobs.find((one) => one.name === name);
  if (!job?.enabled || job.since >= dueAt) return [];
  if (job.running && now - job.running.at < GONE_MS) return [];
  return [...abandoned(job), cronRunStarted.draft({ name, run: job.runs + 1, dueAt })];
}

/** @throws AppError 404; 409 while it is running */
export function decideAskedRun(state: CronState, name: string, now: number): EventDraft[] {
  const job = jobOf(state, name);
  if (job.running && now - job.running.at < GONE_MS) throw conflict('The job is running; wait until it has ended.');
  return [...abandoned(job), cronRunStarted.draft({ name, run: job.runs + 1, dueAt: null })];
}

const abandoned = ({ name, running }: CronJob): EventDraft[] =>
  running
    ? [cronRunEnded.draft({ name, run: running.run, ok: false, message: 'It never ended.', durationMs: GONE_MS })]
    : [];

// --- Commands ---------------------------------------------------------------------------------------------------------

/** Runs one of the commands. @returns what it did @throws when it fails */
export type RunCommand = (command: string) => Promise<string>;

export interface RunResult {
  readonly ok: boolean;
  readonly message: string;
}

/** Does a run that was claimed, and records how it went. */
async function perform(
  commands: Commands,
  context: CommandContext,
  claimed: readonly { readonly type: string; readonly data: Readonly<Record<string, unknown>> }[],
  command: string,
  run: RunCommand,
): Promise<RunResult | undefined> {
  const started = claimed.find(({ type }) => type === cronRunStarted.type)?.data as
    | { readonly name: string; readonly run: number }
    | undefined;
  if (!started) return undefined;
  const begun = performance.now();
  const result = await run(command).then(
    (message): RunResult => ({ ok: true, message }),
    (error: unknown): RunResult => ({ ok: false, message: error instanceof Error ? error.message : String(error) }),
  );
  const message = frontOf(result.message.replace(/[\0\p{Surrogate}]/gu, '\uFFFD'), MAX_MESSAGE);
  const durationMs = Math.round(performance.now() - begun);
  const { name, run: nth } = started;
  await commands.record(CRON_STREAM, { origin: context.origin }, [
    cronRunEnded.draft({ name, run: nth, ok: result.ok, message, durationMs }),
  ]);
  return { ok: result.ok, message };
}

/** Runs a job because somebody asks for it. @throws AppError 404, 409 */
export async function triggerJob(
  commands: Commands,
  context: CommandContext,
  name: string,
  run: RunCommand,
  now: () => number,
): Promise<RunResult> {
  let command = '';
  const { events } = await commands.execute(cronDecider, CRON_STREAM, { origin: context.origin }, (state) => {
    ({ command } = jobOf(state, name));
    return decideAskedRun(state, name, now());
  });
  return (await perform(commands, context, events, command, run)) ?? { ok: false, message: 'It was not run.' };
}

/** Runs a job if its time has come. @returns undefined when it has not @throws AppError 404 */
export async function runIfDue(
  commands: Commands,
  context: CommandContext,
  name: string,
  parts: { readonly run: RunCommand; readonly zone: string; readonly now: () => number },
): Promise<RunResult | undefined> {
  const { state } = await commands.load(cronDecider, CRON_STREAM);
  const job = jobOf(state, name);
  const dueAt = dueOf(job, parts.zone, parts.now());
  if (dueAt === undefined) return undefined;
  const { events } = await commands.execute(cronDecider, CRON_STREAM, { origin: context.origin }, (now) =>
    decideDueRun(now, name, dueAt, parts.now()),
  );
  return perform(commands, context, events, job.command, parts.run);
}
