/**
 * The agent runner over HTTP, as docs/agent-runner.md describes it. One URL is called and no other: redirects are not
 * followed. What it answers is read up to a limit.
 */
import { z } from 'zod';
import { MAX_STEP_TEXT } from '../shared/contract/pipelines/runs.ts';
import { type Runner, type RunnerAnswer, RunnerError, type StepRequest } from '../shared/ports/runner.ts';
import { frontOf } from '../shared/storable.ts';

export interface RunnerOptions {
  readonly runnerUrl: string | undefined;
  readonly runnerToken: string | undefined;
  readonly runnerTimeoutMs: number;
}

/** Bytes of an answer. */
const MAX_ANSWER = 65_536;
/** Characters of an answer that a failure quotes. */
const QUOTED = 200;
/** Statuses by which the runner says that it will never take this step as it is. */
const REFUSALS = [400, 413, 415, 422];

const ANSWER = z.object({
  status: z.enum(['accepted', 'completed', 'failed']),
  output: z.string().nullish(),
  error: z.string().nullish(),
});

/** Undefined when none is configured. */
export function createRunner(options: RunnerOptions): Runner | undefined {
  const { runnerUrl } = options;
  if (runnerUrl === undefined) return undefined;
  return {
    async run(request, signal) {
      const late = AbortSignal.timeout(options.runnerTimeoutMs);
      try {
        const response = await send(runnerUrl, options, request, AbortSignal.any([signal, late]));
        return answerOf(response.status, await textOf(response));
      } catch (error) {
        if (error instanceof RunnerError) throw error;
        // Its reason is whoever stops the work.
        if (signal.aborted) throw signal.reason;
        const cause = { cause: error };
        if (late.aborted) {
          throw new RunnerError(`The agent runner did not answer within ${options.runnerTimeoutMs} ms.`, true, cause);
        }
        throw new RunnerError(`The agent runner could not be reached (${codeOf(error)}).`, true, cause);
      }
    },
  };
}

function send(
  url: string,
  { runnerToken }: RunnerOptions,
  request: StepRequest,
  signal: AbortSignal,
): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    redirect: 'manual',
    signal,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      'idempotency-key': request.idempotencyKey,
      ...(runnerToken !== undefined && { authorization: `Bearer ${runnerToken}` }),
    },
    body: JSON.stringify({
      workspace_id: request.workspaceId,
      run_id: request.runId,
      pipeline_id: request.pipelineId,
      pipeline_name: request.pipelineName,
      step_index: request.step,
      step_count: request.steps,
      template_id: request.templateId,
      template_name: request.templateName,
      prompt: request.prompt,
      model: request.model,
      timeout_seconds: request.timeoutSeconds,
    }),
  });
}

/** @throws RunnerError when it is too long */
async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    // Leaving the loop ends the connection.
    if (bytes > MAX_ANSWER) throw new RunnerError(`The agent runner sent more than ${MAX_ANSWER} bytes.`, true);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** @throws RunnerError */
function answerOf(status: number, text: string): RunnerAnswer {
  if (status >= 300 && status < 400) {
    throw new RunnerError(
      `The agent runner answered with a redirect (${status}), which is not followed; set RUNNER_URL to where it leads.`,
      true,
    );
  }
  if (status >= 400) {
    const said = text === '' ? '' : `: ${storable(text, QUOTED)}`;
    throw new RunnerError(`The agent runner answered ${status}${said}`, !REFUSALS.includes(status));
  }
  if (status === 202 && text.trim() === '') return { status: 'accepted', output: null, error: null };
  const answer = ANSWER.safeParse(parsed(text));
  if (!answer.success) {
    throw new RunnerError(
      `The agent runner answered ${status} without a status accepted, completed or failed: ${storable(text, QUOTED)}`,
      true,
    );
  }
  const { output, error } = answer.data;
  return {
    status: answer.data.status,
    output: output ? storable(output, MAX_STEP_TEXT) : null,
    error: error ? storable(error, MAX_STEP_TEXT) : null,
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The beginning of a text, with characters that cannot be stored replaced. */
const storable = (text: string, max: number): string => frontOf(text.replace(/[\0\p{Surrogate}]/gu, '\uFFFD'), max);

/** What went wrong below HTTP. The message may hold the address, which is nobody's business. */
function codeOf(error: unknown): string {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: { readonly code?: unknown } };
  return String(cause?.code ?? code ?? 'no connection');
}
