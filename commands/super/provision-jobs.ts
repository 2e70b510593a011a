/**
 * Provisioning jobs: requested by one person, approved by another, then run. Signalbox only keeps the records. It
 * executes nothing itself, so a dry run skips every step, and a live run fails because there is no provisioner.
 */
import { randomUUID } from 'node:crypto';
import type { JobDecisionBody, NewProvisionJobBody, StepRecord } from '../../shared/contract/super/provision-jobs.ts';
import type { DecommissionBody } from '../../shared/contract/super/tenants.ts';
import { AppError, conflict, invalid } from '../../shared/errors.ts';
import { type EventDraft, firstOf } from '../../shared/events/define.ts';
import { type Actor, DEFAULT_TENANT } from '../../shared/events/metadata.ts';
import {
  type JobType,
  provisionJobApproved,
  provisionJobCancelled,
  provisionJobCompleted,
  provisionJobFailed,
  provisionJobQueued,
  provisionJobRejected,
  provisionJobStarted,
  provisionStepEnded,
} from '../../shared/events/super/provision-jobs.ts';
import { type TenantStatus, tenantStream } from '../../shared/events/super/tenants.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { reserveId } from '../record-ids.ts';
import { existing, type OpenJob, type TenantState, tenantDecider } from './tenants.ts';

/** Maximum number of jobs per tenant that wait for a person. */
export const MAX_OPEN_JOBS = 100;

export interface NewJob {
  readonly job_type: JobType;
  readonly dry_run: boolean;
  readonly request: Readonly<Record<string, unknown>>;
  readonly plan: readonly StepRecord[];
  readonly requested_by: Actor;
  readonly idempotency_key: string | null;
  readonly reason: string | null;
}

const step = (key: string, title: string): StepRecord => ({ key, title, command: [], requires_root: true });

/** The steps of a job. Their commands are up to a provisioner. */
export function planFor(
  jobType: JobType,
  { linux_user: linuxUser, slug }: Pick<TenantState, 'linux_user' | 'slug'>,
  removes: Pick<DecommissionBody, 'remove_linux_user' | 'remove_state_dirs'>,
): StepRecord[] {
  if (jobType === 'decommission')
    return [
      step('stop-services', `Stop the services of ${slug}`),
      ...(removes.remove_state_dirs ? [step('remove-state-dirs', `Remove the directories of ${slug}`)] : []),
      ...(removes.remove_linux_user ? [step('remove-linux-user', `Remove the account ${linuxUser}`)] : []),
    ];
  if (jobType === 'update') return [step('update-services', `Update and restart the services of ${slug}`)];
  return [
    step('create-linux-user', `Create the account ${linuxUser}`),
    step('create-state-dirs', `Create the directories of ${slug}`),
    step('start-services', `Start the services of ${slug}`),
  ];
}

// --- Decisions --------------------------------------------------------------------------------------------------------

/** @throws AppError 400 for the default tenant, 404 for an unknown one, 409 with too many open jobs */
export function decideQueue(state: TenantState, jobId: number, job: NewJob): EventDraft[] {
  const tenant = existing(state);
  if (state.id === DEFAULT_TENANT)
    throw invalid(
      'tenant_id: the default tenant is the deployment itself, which is not provisioned; name another one.',
    );
  if (state.jobs.size >= MAX_OPEN_JOBS)
    throw conflict(`This tenant has ${MAX_OPEN_JOBS} open jobs already, which is the limit; run or cancel one first.`);
  const { plan, ...rest } = job;
  return [
    provisionJobQueued.draft({
      ...tenant,
      job_id: jobId,
      ...rest,
      request: { ...job.request, dry_run: job.dry_run },
      plan: plan.map(({ requires_root, timeout_ms, ...one }) => ({
        ...one,
        requires_root,
        timeout_ms: timeout_ms ?? null,
      })),
    }),
  ];
}

/** @throws AppError 400 for a job that has ended */
function openJob({ jobs }: TenantState, id: number): OpenJob {
  const job = jobs.get(id);
  if (!job) throw invalid('This job has ended and cannot change any more. Queue a new one.');
  return job;
}

const ALLOWED: Readonly<Record<JobDecisionBody['action'], readonly OpenJob['status'][]>> = {
  approve: ['queued', 'rejected', 'failed'],
  reject: ['queued', 'approved', 'failed'],
  cancel: ['queued', 'approved', 'rejected', 'failed'],
};
const DECIDED = { approve: provisionJobApproved, reject: provisionJobRejected, cancel: provisionJobCancelled };

const either = (statuses: readonly string[]): string =>
  `${statuses.slice(0, -1).join(', ')} or ${statuses[statuses.length - 1]}`;

/** @throws AppError 400 if the status of the job does not allow it */
export function decideJob(
  state: TenantState,
  jobId: number,
  {
    action,
    reason = null,
  }: { readonly action: JobDecisionBody['action']; readonly reason?: string | null | undefined },
  by: Actor,
): EventDraft[] {
  const { job_type, dry_run, status } = openJob(state, jobId);
  if (!ALLOWED[action].includes(status))
    throw invalid(`This job is ${status}; the action ${action} needs a job that is ${either(ALLOWED[action])}.`);
  return [DECIDED[action].draft({ ...existing(state), job_id: jobId, job_type, dry_run, by, reason })];
}

/** Whether one person may be behind both. Only user accounts prove otherwise: a user may also have the global key. */
const mayBeSame = (one: Actor, other: Actor): boolean =>
  one.type !== 'user' || other.type !== 'user' || one.id === other.id;

/** What to do if a caller acts without a personal account. */
const signIn = (...actors: readonly Actor[]): string =>
  actors.every(({ type }) => type === 'user')
    ? ''
    : ' An API key does not say which person uses it: ask for, approve and run live jobs signed in.';

/** The status of the tenant after a successful run. */
const statusAfter = ({ job_type: jobType, dry_run: dryRun }: OpenJob): TenantStatus | null => {
  if (jobType !== 'decommission') return 'active';
  return dryRun ? null : 'suspended';
};

export const NO_PROVISIONER =
  'This deployment has no provisioner, so the job cannot be run live and nothing was executed. Queue it with dry_run: true to go through its steps.';

/** @throws AppError 400 when a rule of runs is broken */
export function decideRun(state: TenantState, jobId: number, by: Actor, runnerHost: string): EventDraft[] {
  const job = openJob(state, jobId);
  const { job_type, dry_run, status, steps, approvedBy, requested_by: requestedBy } = job;
  if (status !== 'approved' || approvedBy === null)
    throw invalid(`This job is ${status}; it must be approved before it can run.`);
  if (steps.length === 0)
    throw invalid('plan_json: the plan of this job is empty; cancel it and queue one with steps.');
  if (!dry_run && mayBeSame(approvedBy, requestedBy))
    throw invalid(
      `A live job needs two people: whoever asked for it cannot approve it. Reject it, and let somebody else approve it.${signIn(approvedBy, requestedBy)}`,
    );
  if (!dry_run && mayBeSame(approvedBy, by))
    throw invalid(
      `A live job needs two people: whoever approved it cannot run it. Let somebody else run it.${signIn(approvedBy, by)}`,
    );
  const about = { ...existing(state), job_id: jobId, job_type, dry_run };
  const during = job_type === 'decommission' ? 'decommissioning' : 'provisioning';
  const started = provisionJobStarted.draft({
    ...about,
    by,
    runner_host: runnerHost,
    tenant_status: dry_run ? null : during,
  });
  if (!dry_run) return [started, provisionJobFailed.draft({ ...about, error: NO_PROVISIONER, tenant_status: 'error' })];
  return [
    started,
    ...steps.map(({ key, title }) => provisionStepEnded.draft({ ...about, key, title, ok: true, skipped: true })),
    provisionJobCompleted.draft({ ...about, steps: steps.length, tenant_status: statusAfter(job) }),
  ];
}

// --- Commands ---------------------------------------------------------------------------------------------------------

export const reserveJob = (commands: Commands, context: CommandContext): Promise<number> =>
  reserveId(commands, context, 'provision-job', (id) => `provision-job-${id}`);

interface QueuedJob {
  readonly id: number;
  readonly executed: Executed;
}

/** Queues a job of an existing tenant. @throws AppError 400, 404, 409 */
async function queue(
  commands: Commands,
  context: CommandContext,
  tenant: number,
  jobOf: (state: TenantState) => NewJob,
): Promise<QueuedJob> {
  const id = await reserveJob(commands, context);
  const decide = (state: TenantState) => decideQueue(state, id, jobOf(state));
  return { id, executed: await commands.execute(tenantDecider, tenantStream(tenant), context, decide) };
}

/** Queues the job that a body describes. @throws AppError 400, 404, 409 */
export function queueJob(commands: Commands, context: CommandContext, body: NewProvisionJobBody): Promise<QueuedJob> {
  const { tenant_id, job_type, dry_run, plan_json, request_json: request } = body;
  const idempotencyKey = job_type === 'update' ? null : randomUUID();
  const removes = {
    remove_linux_user: request.remove_linux_user === true,
    remove_state_dirs: request.remove_state_dirs === true,
  };
  return queue(commands, context, tenant_id, (state) => ({
    job_type,
    dry_run,
    request,
    plan: plan_json ?? planFor(job_type, state, removes),
    requested_by: context.origin.actor,
    idempotency_key: idempotencyKey,
    reason: null,
  }));
}

/** Requests the decommissioning of a tenant. @throws AppError 400 for the default tenant, 404, 409 */
export function decommission(
  commands: Commands,
  context: CommandContext,
  tenant: number,
  body: DecommissionBody,
): Promise<QueuedJob> {
  const { dry_run, reason, ...removes } = body;
  const idempotencyKey = randomUUID();
  return queue(commands, context, tenant, (state) => ({
    job_type: 'decommission',
    dry_run,
    request: { ...removes, ...(reason !== undefined && { reason }) },
    plan: planFor('decommission', state, removes),
    requested_by: context.origin.actor,
    idempotency_key: idempotencyKey,
    reason: reason ?? null,
  }));
}

/** The id of a job, with its tenant. */
export interface JobPlace {
  readonly tenant: number;
  readonly job: number;
}

/** Approves, rejects or cancels a job. @throws AppError 400 */
export async function decideAboutJob(
  commands: Commands,
  context: CommandContext,
  { tenant, job }: JobPlace,
  body: JobDecisionBody,
): Promise<Executed> {
  return commands.execute(tenantDecider, tenantStream(tenant), context, (state) =>
    decideJob(state, job, body, context.origin.actor),
  );
}

/** Runs a job. A failed run is recorded, and refused. @throws AppError 400 */
export async function runJob(
  commands: Commands,
  context: CommandContext,
  { tenant, job }: JobPlace,
  runnerHost: string,
): Promise<Executed> {
  const executed = await commands.execute(tenantDecider, tenantStream(tenant), context, (state) =>
    decideRun(state, job, context.origin.actor, runnerHost),
  );
  const failed = firstOf(executed.events, provisionJobFailed);
  if (failed) throw new AppError(400, failed.data.error, { code: 'NO_PROVISIONER' });
  return executed;
}
