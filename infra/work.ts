/** The background work of one process: runs jobs, stores the schedules, runs the policies, delivers webhooks. */
import { alertJobs } from '../commands/policies/alerts/actions.ts';
import { policies } from '../commands/policies/index.ts';
import { pipelineJobs } from '../commands/policies/pipelines/runs.ts';
import { reviewJobs } from '../commands/policies/quality/verdicts.ts';
import { dispatchJobs } from '../commands/policies/tasks/dispatch.ts';
import { runsOfPipeline } from '../queries/pipelines/runs.ts';
import { dispatchReads } from '../queries/tasks/dispatch.ts';
import type { JobHandler, Jobs } from '../shared/ports/jobs.ts';
import type { Core } from './core.ts';
import { openJobs } from './jobs/jobs.ts';
import { type Policies, startPolicies } from './jobs/policies.ts';
import { outgoingOf } from './outgoing/post.ts';
import { createRunner } from './outgoing/runner.ts';
import { startWebhooks } from './outgoing/webhooks/worker.ts';
import { schedulesOf } from './schedules.ts';

export interface Work {
  readonly jobs: Jobs;
  readonly policies: Pick<Policies, 'statuses'>;
  /** Waits for running jobs and deliveries, `config.shutdownTimeoutMs` at most. */
  close(): Promise<void>;
}

/** Handlers of the jobs that policies request. */
function policyJobs({ commands, store, positions, reads, config }: Core): readonly JobHandler[] {
  const runner = createRunner(config);
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
    ...alertJobs({ commands, store, outgoing: outgoingOf(config), now: Date.now }),
  ];
}

/** Starts the work. Does not wait for the job store: while it is unavailable, only jobs wait. */
export async function startWork(core: Core): Promise<Work> {
  const jobs = await openJobs(core);
  const webhooks = startWebhooks(core);
  const schedules = schedulesOf(core, () => Date.now(), webhooks.retry);
  for (const { kind, everyMs } of schedules) jobs.every(kind, everyMs);
  jobs.work([...schedules.map(({ handler }) => handler), ...policyJobs(core)]);
  const running = startPolicies(policies, { ...core, jobs });
  return {
    jobs,
    policies: running,
    async close() {
      // Both may wait as long as a shutdown may take.
      await Promise.all([webhooks.close(), running.close().then(() => jobs.close())]);
    },
  };
}
