/** The port of the agent runner: whoever has agents do the steps of pipelines. */

/** One step of a run, as the runner is told. */
export interface StepRequest {
  readonly workspaceId: number;
  readonly runId: number;
  readonly pipelineId: number;
  readonly pipelineName: string;
  /** From 0. */
  readonly step: number;
  /** Steps of the run. */
  readonly steps: number;
  readonly templateId: number;
  readonly templateName: string;
  /** What the agent is told. It begins with the pipeline's name and the number of the step. */
  readonly prompt: string;
  readonly model: string;
  /** How long the agent may take, seconds. */
  readonly timeoutSeconds: number;
  /** The same whenever this step of this run is handed over: a runner that has seen it answers as it did then. */
  readonly idempotencyKey: string;
}

/**
 * `accepted`: somebody advances the run later. `completed`, `failed`: the step is over, and the run goes on by itself.
 * Texts are short and can be stored.
 */
export interface RunnerAnswer {
  readonly status: 'accepted' | 'completed' | 'failed';
  readonly output: string | null;
  /** Why it failed. */
  readonly error: string | null;
}

/** The runner did not take the step, or it is not known whether it did. The message can be shown. */
export class RunnerError extends Error {
  /** Whether the same request may be answered otherwise later. */
  readonly retry: boolean;
  constructor(message: string, retry: boolean, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RunnerError';
    this.retry = retry;
  }
}

export interface Runner {
  /** Hands a step over. @throws RunnerError; what the signal aborts with */
  run(request: StepRequest, signal: AbortSignal): Promise<RunnerAnswer>;
}
