/** The background work of one process: runs jobs, stores the schedules, runs the policies, delivers webhooks. */
import { alertJobs } from '../commands/policies/alerts/actions.ts';
import { policies } from '../commands/policies/index.ts';
import { pipelineJobs } from '../commands/policies/pipelines/runs.ts';
import { reviewJobs } from '../commands/policies/quality/verdicts.ts';
import { dispatchJobs } from '../commands/policies/tasks/dispatch.ts';
import { runsOfPipeline } from '../queries/pipelines/runs.ts';
import { dispatchReads } from '../queries/tasks/dispatch.ts';
import type { JobHandler, Jobs } from '../shared/ports/jobs.ts';
import { createOutage } from '../shared/waiting.ts';
import type { Core } from './core.ts';
import { openJobs } from './jobs/jobs.ts';
import { type Policies, startPolicies } from './jobs/policies.ts';
import { outgoingOf } from './outgoing/post.ts';
import { createRunner } from './outgoing/runner.ts';
import { registerWebhooks, startWebhooks } from './outgoing/webhooks/worker.ts';
import { schedulesOf } from './schedules.ts';

export interface Work {
  readonly jobs: Jobs;
  readonly policies: Pick<Policies, 'statuses'>;
  /** Waits for running jobs and deliveries, `config.shutdownTimeoutMs` at most. */
  close(): Promise<void>;
}

/** Handlers of the jobs that policies request. */
function policyJobs({ commands, store, positions, reads, config, pause }: Core): readonly JobHandler[] {
  const gate = pause.refuse;
  const runner = createRunner({ ...config, gate });
  const work = { commands, runner, reads: dispatchReads(reads), now: Date.now };
  return [
    ...dispatchJobs(work),
    ...reviewJobs(work),
    ...pipelineJobs({
      commands,
      store,
      readModels: positions,
      runner,
      runsOf: (workspace, pipeline, after) => runsOfPipeline(reads, workspace, pipeline, after),
      now: Date.now,
    }),
    ...alertJobs({ commands, store, outgoing: outgoingOf({ ...config, gate }), now: Date.now }),
  ];
}

/**
 * Starts the work. Does not wait for the job store: while it is unavailable, only jobs wait. After a restore, everything
 * waits until an operator resumes the deployment.
 */
export async function startWork(core: Core): Promise<Work> {
  const jobs = await openJobs(core);
  const stop = new AbortController();
  let running: ReturnType<typeof runAll> | undefined;
  const waiting = (await core.pause.since()) === null ? undefined : resumed(core, stop.signal);
  if (!waiting) running = runAll(core, jobs);
  const begun = waiting?.then(() => {
    if (!stop.signal.aborted) running = runAll(core, jobs);
  });
  return {
    jobs,
    policies: {
      get statuses() {
        return running?.policies.statuses ?? [];
      },
    },
    async close() {
      stop.abort();
      await begun;
      // Both may wait as long as a shutdown may take.
      await Promise.all([
        running?.webhooks.close(),
        running?.policies.close().then(() => jobs.close()) ?? jobs.close(),
      ]);
    },
  };
}

function runAll(core: Core, jobs: Jobs) {
  const webhooks = startWebhooks(core);
  const schedules = schedulesOf(core, () => Date.now(), webhooks.retry);
  for (const { kind, everyMs } of schedules) jobs.every(kind, everyMs);
  jobs.work([...schedules.map(({ handler }) => handler), ...policyJobs(core)]);
  return { webhooks, policies: startPolicies(policies, { ...core, jobs }) };
}

/** Resolves when the deployment is resumed, or with `signal`. */
async function resumed(core: Core, signal: AbortSignal): Promise<void> {
  const { pause, log } = core;
  log.warn(
    'this deployment was restored and is paused: no call leaves, and no schedule runs. To end this: signalbox resume, or POST /api/resume',
  );
  const outage = createOutage(log, 'the pause cannot be read; trying again', 'the pause is read again');
  // What happens in the meantime is delivered later.
  const registering = registerWebhooks(core).catch((error: unknown) =>
    log.warn({ err: error }, 'webhooks could not be registered: they begin when the deployment is resumed'),
  );
  await pause.ended(signal, outage.failed);
  await registering;
  if (!signal.aborted) log.info('this deployment is resumed');
}
