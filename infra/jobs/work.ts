/** The background work of one process: runs jobs, stores the schedules, runs the policies. */
import { policies } from '../../commands/policies/index.ts';
import type { Jobs } from '../../shared/ports/jobs.ts';
import type { Core } from '../core.ts';
import type { Database } from '../database/database.ts';
import { openJobs } from './jobs.ts';
import { type Policies, startPolicies } from './policies.ts';
import { schedulesOf } from './schedules.ts';

export interface Work {
  readonly jobs: Jobs;
  readonly policies: Pick<Policies, 'statuses'>;
  /** Waits for running jobs, `config.shutdownTimeoutMs` at most. */
  close(): Promise<void>;
}

/** Opens the jobs of a deployment, for callers that only add or list them. Does not contact the store yet. */
export function openCoreJobs({
  config,
  database,
  log,
}: Pick<Core, 'config' | 'log'> & { readonly database: Database | undefined }): Promise<Jobs> {
  return openJobs({
    redisUrl: config.redisUrl,
    databaseUrl: config.databaseUrl,
    statementTimeoutMs: config.statementTimeoutMs,
    shutdownTimeoutMs: config.shutdownTimeoutMs,
    database,
    log,
  });
}

/** Starts the work. Does not wait for the job store: while it is unavailable, jobs wait but nothing else does. */
export async function startWork(core: Core): Promise<Work> {
  const jobs = await openCoreJobs(core);
  const schedules = schedulesOf(core);
  jobs.work(schedules.map(({ handler }) => handler));
  for (const { kind, everyMs } of schedules) jobs.every(kind, everyMs);
  const { database, store, following, log, process } = core;
  const running = startPolicies(policies, { database, store, following, jobs, log, process });
  return {
    jobs,
    policies: running,
    async close() {
      await running.close();
      await jobs.close();
    },
  };
}
