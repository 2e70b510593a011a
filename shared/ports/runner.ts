/** The port of the agent runner, which has agents execute pipeline steps, work on tasks, and review results. */

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
  /** Time limit of the agent, seconds. */
  readonly timeoutSeconds: number;
  /** The same for every hand-over of this step of this run: a runner that already has it repeats its first response. */
  readonly idempotencyKey: string;
}

/**
 * `accepted`: the run is advanced later. `completed`, `failed`: the step has ended, and the run continues
 * automatically. Texts are short and can be stored.
 */
export interface RunnerResponse {
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
  /** Number of the request about this task, from 1. */
  readonly attempt: number;
  /** The prompt of the agent. */
  readonly prompt: string;
  /** The same for every attempt: a runner that already has the request repeats its first response. */
  readonly idempotencyKey: string;
}

/** A task for its assignee, or one that needs a verdict. */
export type WorkRequest =
  | (AboutTask & {
      readonly kind: 'task';
      readonly agent: { readonly id: number; readonly name: string; readonly role: string };
      /** The session to continue; null: a new one. */
      readonly sessionId: string | null;
    })
  | (AboutTask & { readonly kind: 'review' });

/** `output` is the result; `sessionId` that of the agent, if the runner has reported one. */
export interface WorkResponse extends RunnerResponse {
  readonly sessionId: string | null;
}

/** The runner did not accept the request, or it is unknown whether it did. The message may be shown. */
export class RunnerError extends Error {
  /** Whether the same request may succeed later. */
  readonly retry: boolean;
  constructor(message: string, retry: boolean, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RunnerError';
    this.retry = retry;
  }
}

export interface Runner {
  /** Hands a step over. @throws RunnerError; the reason of the signal */
  run(request: StepRequest, signal: AbortSignal): Promise<RunnerResponse>;
  /** Has an agent work on a task, or review it. @throws RunnerError; the reason of the signal */
  work(request: WorkRequest, signal: AbortSignal): Promise<WorkResponse>;
}
