/** The port of the agent runner, which makes agents do pipeline steps, work on tasks, and review results. */

/** One step of a run, as the runner gets it. */
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
  /** The prompt of the agent. It begins with the pipeline's name and the number of the step. */
  readonly prompt: string;
  readonly model: string;
  /** How long the agent may take, seconds. */
  readonly timeoutSeconds: number;
  /** The same whenever this step of this run is handed over: a runner that has seen it answers as it did then. */
  readonly idempotencyKey: string;
}

/**
 * `accepted`: the run is advanced later. `completed`, `failed`: the step is over, and the run continues by itself.
 * Texts are short and can be stored.
 */
export interface RunnerAnswer {
  readonly status: 'accepted' | 'completed' | 'failed';
  readonly output: string | null;
  /** Why it failed. */
  readonly error: string | null;
}

interface AboutTask {
  readonly workspaceId: number;
  readonly taskId: number;
  readonly ticketRef: string;
  readonly title: string;
  readonly priority: string;
  /** Which time it is that the runner is asked about this task, counted from 1. */
  readonly attempt: number;
  /** The prompt of the agent. */
  readonly prompt: string;
  /** The same whenever this request is repeated: a runner that has seen it answers as it did then. */
  readonly idempotencyKey: string;
}

/** A task for its assignee, or one that needs a verdict. */
export type WorkRequest =
  | (AboutTask & {
      readonly kind: 'task';
      readonly agent: { readonly id: number; readonly name: string; readonly role: string };
      /** The session to go on with; null: a new one. */
      readonly sessionId: string | null;
    })
  | (AboutTask & { readonly kind: 'review' });

/** `output` is the result; `sessionId` that of the agent, if the runner has told one. */
export interface WorkAnswer extends RunnerAnswer {
  readonly sessionId: string | null;
}

/** The runner did not take the request, or it is not known whether it did. The message can be shown. */
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
  /** Has an agent work on a task, or review it. @throws RunnerError; what the signal aborts with */
  work(request: WorkRequest, signal: AbortSignal): Promise<WorkAnswer>;
}
