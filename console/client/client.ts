/** Calls of the API, by the client of this repository (`client/`); a 401 ends the session. */
import {
  type Answer,
  type Call,
  createClient,
  type LooselyAsked,
  type ResponseOf,
  SignalboxError,
} from '../../client/index.ts';

export { addressOf, type Call, type ResponseOf, SignalboxError as CallError } from '../../client/index.ts';
export type Asked = Pick<LooselyAsked, 'params' | 'query' | 'body'>;

<<<<<<< HEAD
/** Short pauses: a person waits. */
export const client = createClient({ retries: 2, longestPauseMs: 2_000 });
=======
export interface Asked {
  /** Values for the `{…}` of the path. */
  readonly params?: Readonly<Record<string, string | number>>;
  readonly query?: Query;
  readonly body?: unknown;
}

export interface Answered<T> {
  readonly data: T;
  /** Position of the log that the response is current for. */
  readonly position: number | undefined;
}

const TIMEOUT_MS = 20_000;
/** For calls that do long work before they respond, such as a backup. */
const LONG_TIMEOUT_MS = 30 * 60_000;

export interface CallOptions {
  /** Ends the call; it then throws an AbortError. */
  readonly signal?: AbortSignal;
  readonly isLong?: boolean;
}

/** A call that failed. `message` says what happened and what to do. */
export class CallError extends Error {
  /** HTTP status; 0 without a response. */
  readonly status: number;
  readonly code: string | undefined;
  readonly requestId: string | undefined;
  constructor(message: string, status: number, code?: string, requestId?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
  }
}

/** Path and query of a call. */
export function addressOf(call: Call, { params = {}, query = {} }: Asked): string {
  const path = call
    .slice(call.indexOf(' ') + 1)
    .replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params[name])));
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const search = new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString();
  return search ? `${path}?${search}` : path;
}

export const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === 'AbortError';
>>>>>>> 3f1f120 (Console: register over the whole log, status over time, records in the drawer, reports behind a cost, backups with progress; files by concern)

/** Handlers of a 401 outside of signing in. */
let onSignedOut: () => void = () => undefined;
export const whenSignedOut = (handler: () => void): void => {
  onSignedOut = handler;
};

/** @throws CallError for a refusal, a time-out, or without a connection */
<<<<<<< HEAD
export async function call<C extends Call>(name: C, asked: Asked = {}): Promise<Answer<ResponseOf<C>>> {
  try {
    return (await client.send(name, asked)) as Answer<ResponseOf<C>>;
  } catch (error) {
    const isSignedOut = error instanceof SignalboxError && error.status === 401;
    if (isSignedOut && !name.startsWith('POST /api/auth/')) onSignedOut();
    throw error;
=======
export async function call<C extends Call>(
  name: C,
  asked: Asked = {},
  { signal, isLong = false }: CallOptions = {},
): Promise<Answered<ResponseOf<C>>> {
  const timeoutMs = isLong ? LONG_TIMEOUT_MS : TIMEOUT_MS;
  const timeout = AbortSignal.timeout(timeoutMs);
  const method = name.slice(0, name.indexOf(' '));
  const headers: Record<string, string> = {};
  if (asked.body !== undefined) headers['content-type'] = 'application/json';
  if (method === 'POST') headers['idempotency-key'] = randomId();
  let response: Response;
  let text: string;
  try {
    response = await fetch(addressOf(name, asked), {
      method,
      headers,
      credentials: 'same-origin',
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      ...(asked.body !== undefined && { body: JSON.stringify(asked.body) }),
    });
    if (!response.ok) throw await errorOf(response);
    text = await response.text();
  } catch (error) {
    if (error instanceof CallError) {
      if (error.status === 401 && !name.startsWith('POST /api/auth/')) onSignedOut();
      throw error;
    }
    if (isAbort(error)) throw error;
    if ((error as Error).name === 'TimeoutError')
      throw new CallError(`No response within ${timeoutMs / 1000} seconds. Try again; the service may be busy.`, 0);
    throw new CallError('The service cannot be reached. Check the connection, then try again.', 0);
>>>>>>> 3f1f120 (Console: register over the whole log, status over time, records in the drawer, reports behind a cost, backups with progress; files by concern)
  }
}
