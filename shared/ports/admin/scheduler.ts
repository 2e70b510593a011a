/** Scheduled tasks of the service: last run, its result, next run, and running one now. */

export interface ScheduledTask {
  readonly id: string;
  readonly name: string;
  /** False: its setting is off, so that only `runNow` runs it. */
  readonly enabled: boolean;
  /** When the last scheduled run began, Unix ms; null before the first. */
  readonly lastRun: number | null;
  /** Unix ms. */
  readonly nextRun: number;
  readonly running: boolean;
  readonly lastResult?: { readonly ok: boolean; readonly message: string; readonly timestamp: number };
}

export interface Scheduler {
  /** Ids of the tasks. */
  readonly ids: readonly string[];
  /** The same in every process. */
  list(): Promise<readonly ScheduledTask[]>;
  /**
   * Runs a task in a worker, whether it is enabled or not, and waits a limited time for the result. Does not change its
   * schedule and its last result.
   *
   * @param id one of `ids`
   * @throws AppError 503 when the job store is unavailable, or the task failed because a store was
   */
  runNow(id: string): Promise<{ readonly ok: boolean; readonly message: string }>;
}
