/** Calls of the API: typed by its description, with a time-out, and errors in words. */
import type { Api } from './api-types.ts';

export type Call = keyof Api;
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;
export type ResponseOf<C extends Call> = Api[C]['response'];

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

/** Handlers of a 401 outside of signing in. */
let onSignedOut: () => void = () => undefined;
export const whenSignedOut = (handler: () => void): void => {
  onSignedOut = handler;
};

/** A random id; `crypto.randomUUID` exists only over HTTPS and on loopback. */
const randomId = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (n) => n.toString(16).padStart(2, '0')).join('');

export async function errorOf(response: Response): Promise<CallError> {
  const requestId = response.headers.get('x-request-id') ?? undefined;
  const body = (await response.json().catch(() => ({}))) as { error?: unknown; code?: string; hint?: string };
  const said = typeof body.error === 'string' ? body.error : `The service responded ${response.status}.`;
  const wait = response.headers.get('retry-after');
  const hint = body.hint ?? (response.status === 429 && wait ? `Try again in ${wait} seconds.` : undefined);
  return new CallError(hint ? `${said} ${hint}` : said, response.status, body.code, requestId);
}

/** @throws CallError for a refusal, a time-out, or without a connection */
export async function call<C extends Call>(name: C, asked: Asked = {}): Promise<Answered<ResponseOf<C>>> {
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
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(asked.body !== undefined && { body: JSON.stringify(asked.body) }),
    });
    if (!response.ok) throw await errorOf(response);
    text = await response.text();
  } catch (error) {
    if (error instanceof CallError) {
      if (error.status === 401 && !name.startsWith('POST /api/auth/')) onSignedOut();
      throw error;
    }
    if ((error as Error).name === 'TimeoutError')
      throw new CallError(`No response within ${TIMEOUT_MS / 1000} seconds. Try again; the service may be busy.`, 0);
    throw new CallError('The service cannot be reached. Check the connection, then try again.', 0);
  }
  const isJson = response.headers.get('content-type')?.startsWith('application/json');
  const position = response.headers.get('x-signalbox-position');
  return {
    data: (isJson ? JSON.parse(text) : text) as ResponseOf<C>,
    position: position === null ? undefined : Number(position),
  };
}
