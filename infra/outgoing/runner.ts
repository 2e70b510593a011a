/**
 * The agent runner over HTTP, as described in docs/agent-runner.md. Only one URL is called: redirects are not followed.
 * Responses are read up to a limit.
 */
import { z } from 'zod';
import { MAX_STEP_TEXT } from '../../shared/contract/pipelines/runs.ts';
import { MAX_RESULT } from '../../shared/contract/tasks/dispatch.ts';
import { type Runner, RunnerError, type StepRequest, type WorkRequest } from '../../shared/ports/runner.ts';
import { frontOf, storableText } from '../../shared/storable.ts';
import type { Config } from '../config.ts';
import { type Gate, OutgoingError, parsed, request } from './request.ts';

type Settings = Pick<Config, 'runnerUrl' | 'runnerToken' | 'runnerTimeoutMs'> & { readonly gate?: Gate };

/** Maximum number of bytes in the response to a step. */
const MAX_ANSWER = 65_536;
/** Maximum number of bytes in a response with a result. */
const MAX_RESULT_ANSWER = 1_048_576;
/** Maximum number of characters in a session's id. */
const MAX_SESSION = 200;
/** Characters of a response that an error quotes. */
const QUOTED = 200;
/** Statuses with which the runner says that it will never accept this request. */
const REFUSALS = [400, 413, 415, 422];

const RESPONSE = z.object({
  status: z.enum(['accepted', 'completed', 'failed']),
  output: z.string().nullish(),
  error: z.string().nullish(),
  session_id: z.string().nullish(),
});
type Answered = z.infer<typeof RESPONSE>;

/** Undefined if no runner is configured. */
export function createRunner(options: Settings): Runner | undefined {
  const { runnerUrl: url } = options;
  if (url === undefined) return undefined;
  return {
    async run(request, signal) {
      const sent = { url, key: request.idempotencyKey, body: stepOf(request), maxBytes: MAX_ANSWER };
      const { status, output, error } = await ask(options, sent, signal);
      return { status, output: shown(output, MAX_STEP_TEXT), error: shown(error, MAX_STEP_TEXT) };
    },
    async work(request, signal) {
      const sent = { url, key: request.idempotencyKey, body: workOf(request), maxBytes: MAX_RESULT_ANSWER };
      const { status, output, error, session_id } = await ask(options, sent, signal);
      return {
        status,
        output: shown(output, MAX_RESULT),
        error: shown(error, MAX_STEP_TEXT),
        sessionId: shown(session_id, MAX_SESSION),
      };
    },
  };
}

interface Sent {
  readonly url: string;
  readonly key: string;
  readonly body: object;
  /** Bytes of the response. */
  readonly maxBytes: number;
}

/** Sends a request, and reads the response. @throws RunnerError; the reason of the signal */
async function ask(options: Settings, sent: Sent, signal: AbortSignal): Promise<Answered> {
  try {
    const { status, text } = await request(sent.url, {
      who: 'The agent runner',
      via: 'proxy',
      method: 'POST',
      headers: headersOf(options, sent.key),
      body: JSON.stringify(sent.body),
      signal,
      timeoutMs: options.runnerTimeoutMs,
      maxBytes: sent.maxBytes,
      gate: options.gate,
    });
    return responseOf(status, text);
  } catch (error) {
    if (!(error instanceof OutgoingError)) throw error;
    throw new RunnerError(error.message, true, { cause: error });
  }
}

const stepOf = (request: StepRequest) => ({
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
});

const workOf = (request: WorkRequest) => ({
  kind: request.kind,
  workspace_id: request.workspaceId,
  task_id: request.taskId,
  ticket_ref: request.ticketRef,
  title: request.title,
  priority: request.priority,
  attempt: request.attempt,
  ...(request.kind === 'task' && {
    agent_id: request.agent.id,
    agent_name: request.agent.name,
    agent_role: request.agent.role,
    session_id: request.sessionId,
  }),
  prompt: request.prompt,
});

const headersOf = ({ runnerToken }: Settings, key: string) => ({
  'content-type': 'application/json',
  accept: 'application/json',
  'idempotency-key': key,
  ...(runnerToken !== undefined && { authorization: `Bearer ${runnerToken}` }),
});

/** @throws RunnerError */
function responseOf(status: number, text: string): Answered {
  if (status >= 300 && status < 400) {
    throw new RunnerError(
      `The agent runner responded with a redirect (${status}), which is not followed; set RUNNER_URL to where it leads.`,
      true,
    );
  }
  if (status >= 400) {
    const said = text === '' ? '' : `: ${front(text, QUOTED)}`;
    throw new RunnerError(`The agent runner responded with status ${status}${said}`, !REFUSALS.includes(status));
  }
  if (status === 202 && text.trim() === '') return { status: 'accepted' };
  const response = RESPONSE.safeParse(parsed(text));
  if (!response.success) {
    throw new RunnerError(
      `The agent runner responded with status ${status} without a status accepted, completed or failed: ${front(text, QUOTED)}`,
      true,
    );
  }
  return response.data;
}

const shown = (text: string | null | undefined, max: number): string | null => (text ? front(text, max) : null);

/** The beginning of a text. */
const front = (text: string, max: number): string => frontOf(storableText(text), max);
