/** API calls: typed by the description of the API, with a time-out, retried where that is safe. */
import type { Api } from './api-types.ts';
import { errorOf, failureOf, redirectOf, SignalboxError } from './errors.ts';
import { isRetried, pause, pauseOf } from './retry.ts';
import { type Frame, frames, type StreamOptions } from './stream.ts';

/** A call by method and path: `GET /api/agents/{id}`. */
export type Call = keyof Api;
export type ResponseOf<C extends Call> = Api[C]['response'];
export type BodyOf<C extends Call> = Api[C]['body'];
export type QueryOf<C extends Call> = Api[C]['query'];

type Names<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;
/** Values for the `{…}` parameters of a path. */
export type ParamsOf<C extends Call> = Readonly<Record<Names<C>, string | number>>;

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Time-out of one attempt, milliseconds; default: that of the client. */
  readonly timeoutMs?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Idempotency key of a POST: 1 to 255 visible ASCII characters. Default: random, the same for all attempts. */
  readonly idempotencyKey?: string | undefined;
}

/** Arguments of a call: `params` if its path has parameters, `body` if it takes one. */
export type Asked<C extends Call> = CallOptions & { readonly query?: QueryOf<C> | undefined } & ([Names<C>] extends [
    never,
  ]
    ? { readonly params?: Readonly<Record<never, never>> | undefined }
    : { readonly params: ParamsOf<C> }) &
  (undefined extends BodyOf<C> ? { readonly body?: BodyOf<C> | undefined } : { readonly body: BodyOf<C> });

/** The last argument is optional if the call needs nothing. */
type AskedOf<C extends Call> = Record<never, never> extends Asked<C> ? [asked?: Asked<C>] : [asked: Asked<C>];

/** A call whose types are not known at compile time, such as one from a form. */
export interface LooselyAsked extends CallOptions {
  readonly params?: Readonly<Record<string, string | number>> | undefined;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  readonly body?: unknown;
}

export interface Answer<T> {
  readonly data: T;
  /** Log position of the response; for a write, that of its last event. */
  readonly position: number | undefined;
  readonly requestId: string | undefined;
  /** An earlier attempt with the same `Idempotency-Key` had taken effect; this is its response. */
  readonly replayed: boolean;
}

export type Result<T> =
  | (Answer<T> & { readonly error?: undefined })
  | { readonly error: SignalboxError; readonly data?: undefined };

export interface ClientOptions {
  /** URL of the service, such as `https://signalbox.example.com`. Default: in a browser, the server of the page. */
  readonly url?: string | undefined;
  /** The key of an agent or of the deployment. Default: none; a browser sends its session cookie. */
  readonly apiKey?: string | undefined;
  /** Name of the agent that the caller speaks for; an agent's own key needs none. */
  readonly agent?: string | undefined;
  /** Further headers of each request; a function is called for each. */
  readonly headers?: Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>) | undefined;
  /** Time-out of one attempt, milliseconds. Default 20,000. */
  readonly timeoutMs?: number | undefined;
  /** Maximum number of retries per call. Default 4. */
  readonly retries?: number | undefined;
  /** The longest pause between two attempts, milliseconds. Default 30,000. */
  readonly longestPauseMs?: number | undefined;
  /** Default: `fetch` of the platform. */
  readonly fetch?: typeof fetch | undefined;
}

export interface Client {
  /** Makes a call. @throws SignalboxError for a refusal, a time-out, or without a connection */
  call<C extends Call>(name: C, ...asked: AskedOf<C>): Promise<Answer<ResponseOf<C>>>;
  /** The same, with the error as a value. */
  attempt<C extends Call>(name: C, ...asked: AskedOf<C>): Promise<Result<ResponseOf<C>>>;
  /** The same as `call`, with untyped arguments. */
  send(name: Call, asked?: LooselyAsked): Promise<Answer<unknown>>;
  /** Follows the event stream. Ends when `signal` aborts. @throws SignalboxError when the service refuses it */
  events(options?: StreamOptions): AsyncGenerator<Frame, void, undefined>;
}

const TIMEOUT_MS = 20_000;
const RETRIES = 4;
const LONGEST_PAUSE_MS = 30_000;

/** Path and query of a call. */
export function addressOf(name: Call, { params = {}, query = {} }: Pick<LooselyAsked, 'params' | 'query'>): string {
  const path = name.slice(name.indexOf(' ') + 1).replace(/\{(\w+)\}/g, (_, key: string) => {
    const value = params[key];
    if (value === undefined || value === '') throw new TypeError(`${name}: params.${key} is missing`);
    return encodeURIComponent(String(value));
  });
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const search = new URLSearchParams(set.map(([key, value]): [string, string] => [key, String(value)])).toString();
  return search ? `${path}?${search}` : path;
}

/** `crypto.randomUUID` exists in browsers only over HTTPS and on loopback. */
const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

/** Aborts with the first of two signals. */
const either = (one: AbortSignal, other: AbortSignal | undefined): AbortSignal =>
  other ? AbortSignal.any([one, other]) : one;

/** Headers are ASCII: other names are percent-encoded, and those with a `%`, which would be decoded. */
const headerText = (name: string): string => (/^[ -$&-~]*$/.test(name) ? name : encodeURIComponent(name));

export function createClient(options: ClientOptions = {}): Client {
  const { apiKey, agent, retries = RETRIES, longestPauseMs = LONGEST_PAUSE_MS } = options;
  const base = (options.url ?? '').replace(/\/+$/, '');
  const platform = options.fetch ?? ((...args: Parameters<typeof fetch>) => fetch(...args));

  /**
   * Sends one request to the service. A redirect is an error: following it would send key and body to another server, or
   * turn a POST into a GET.
   */
  async function request(address: string, init: RequestInit): Promise<Response> {
    const response = await platform(base + address, { ...init, credentials: 'same-origin', redirect: 'manual' });
    const redirect = redirectOf(response, base + address);
    if (redirect) throw redirect;
    return response;
  }

  const headersOf = (own: Readonly<Record<string, string>>): Record<string, string> => ({
    ...(apiKey !== undefined && { 'x-api-key': apiKey }),
    ...(agent !== undefined && { 'x-agent-name': headerText(agent) }),
    ...(typeof options.headers === 'function' ? options.headers() : options.headers),
    ...own,
  });

  async function once(
    method: string,
    address: string,
    asked: LooselyAsked,
    key: string | undefined,
  ): Promise<Answer<unknown>> {
    const { body, signal, timeoutMs = options.timeoutMs ?? TIMEOUT_MS } = asked;
    try {
      const response = await request(address, {
        method,
        headers: headersOf({
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(key !== undefined && { 'idempotency-key': key }),
          ...asked.headers,
        }),
        signal: either(AbortSignal.timeout(timeoutMs), signal),
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      if (!response.ok) throw await errorOf(response);
      const text = await response.text();
      const { headers } = response;
      const position = headers.get('x-signalbox-position') ?? headers.get('x-signalbox-position-at-least');
      return {
        data: response.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : text,
        position: position === null ? undefined : Number(position),
        requestId: response.headers.get('x-request-id') ?? undefined,
        replayed: response.headers.get('idempotency-replayed') === 'true',
      };
    } catch (error) {
      throw failureOf(error, { aborted: signal?.aborted ?? false, timeoutMs });
    }
  }

  async function send(name: Call, asked: LooselyAsked = {}): Promise<Answer<unknown>> {
    const method = name.slice(0, name.indexOf(' '));
    const address = addressOf(name, asked);
    const key = method === 'POST' ? (asked.idempotencyKey ?? randomKey()) : undefined;
    for (let attempt = 1; ; attempt++) {
      try {
        return await once(method, address, asked, key);
      } catch (error) {
        if (!(error instanceof SignalboxError) || attempt > retries || !isRetried(method, error)) throw error;
        if ((error.retryAfterMs ?? 0) > longestPauseMs) throw error;
        await pause(pauseOf(attempt, { longestPauseMs }, error.retryAfterMs), asked.signal);
        if (asked.signal?.aborted) throw failureOf(asked.signal.reason, { aborted: true, timeoutMs: 0 });
      }
    }
  }

  return {
    send,
    call: (name, ...[asked]) => send(name, asked as LooselyAsked) as never,
    async attempt(name, ...[asked]) {
      try {
        return (await send(name, asked as LooselyAsked)) as never;
      } catch (error) {
        if (error instanceof SignalboxError) return { error };
        throw error;
      }
    },
    events: (stream = {}) =>
      frames(({ lastId, kinds, signal }) => {
        const query = kinds && kinds.length > 0 ? { kind: kinds.join(',') } : {};
        return request(addressOf('GET /api/events', { query }), {
          headers: headersOf(lastId === undefined ? {} : { 'last-event-id': lastId }),
          signal,
        });
      }, stream),
  };
}
