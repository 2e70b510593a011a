/**
 * One request over HTTP to another service: bounded in time and bytes, on a connection of its own, without redirects.
 * Every outgoing call is made here, so each has a time-out and a limit, and reports errors in the same words.
 *
 * For URLs that users provide, a rule decides which addresses are allowed. It checks the address itself when the
 * connection is made: a name that resolved to a public address when it was configured may resolve to another one now,
 * and a result of the name server is used only by the connection for which it was checked. A name with several
 * addresses is refused if one of them is not allowed.
 *
 * This uses Node's own client instead of `fetch`, which refuses some eighty ports, because browsers do
 * (https://fetch.spec.whatwg.org/#port-blocking), and does not expose the address before it sends.
 */
import { type LookupAddress, type LookupOptions, lookup as resolve } from 'node:dns';
import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { type AddressRule, hostOf } from '../../shared/addresses.ts';
import { tracedRequest } from '../tracing/requests.ts';
import { proxyAgentOf } from './proxy.ts';

/** `late`: no response in time. `large`: more bytes than the limit. `address`: the address is not allowed. */
export type OutgoingFault = 'late' | 'offline' | 'large' | 'address';

/** The message may be shown: it is a sentence that names no address of the network. */
export class OutgoingError extends Error {
  readonly fault: OutgoingFault;
  constructor(fault: OutgoingFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'OutgoingError';
    this.fault = fault;
  }
}

/** Decides before each request whether it may be sent. @throws AppError */
export type Gate = () => Promise<void>;

/**
 * How the service is reached. A rule and a proxy exclude each other: the proxy would connect to the address, and the rule
 * would see only that of the proxy.
 */
type Path =
  | {
      readonly via: 'direct';
      /** Default: every address is allowed. */
      readonly rule?: AddressRule;
      /** For tests; default: the system's resolver. */
      readonly lookup?: typeof resolve | undefined;
    }
  /** For URLs of the operator: through the proxy of the environment (`proxy.ts`), if there is one. */
  | { readonly via: 'proxy'; readonly rule?: never; readonly lookup?: never };

export type Asking = Path & {
  /** The called service, as the start of error messages: `The gateway`. */
  readonly who: string;
  readonly method?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Stops the request. */
  readonly signal?: AbortSignal | undefined;
  /** Time-out of the whole request, milliseconds. */
  readonly timeoutMs: number;
  /** Maximum number of bytes in the response's body. */
  readonly maxBytes: number;
  /** Reads only the beginning of a longer body, and does not treat that as an error. */
  readonly beginning?: boolean;
  /** Closed while the deployment is paused; undefined: sign-in, which a person is waiting for. */
  readonly gate: Gate | undefined;
};

export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** @throws OutgoingError; what the signal aborts with; what the gate throws */
export async function request(url: string, asking: Asking): Promise<Received> {
  const { who, signal, timeoutMs, maxBytes, beginning = false, gate } = asking;
  signal?.throwIfAborted();
  await gate?.();
  const late = AbortSignal.timeout(timeoutMs);
  try {
    const either = AbortSignal.any(signal ? [signal, late] : [late]);
    return await tracedRequest(asking.method ?? 'GET', url, async (trace) => {
      const response = await send(new URL(url), { ...asking, headers: { ...asking.headers, ...trace } }, either);
      const text = await textOf(response, maxBytes, beginning, who);
      return { status: response.statusCode ?? 0, headers: response.headers, text };
    });
  } catch (error) {
    // The signal's reason is what stops the work.
    if (signal?.aborted) throw signal.reason;
    if (error instanceof OutgoingError) throw error;
    const cause = { cause: error };
    if (late.aborted) throw new OutgoingError('late', `${who} did not respond within ${timeoutMs} ms.`, cause);
    throw new OutgoingError('offline', `${who} could not be reached (${codeOf(error)}).`, cause);
  }
}

/** The parameters that libraries pass to `fetch`. */
interface Fetching {
  readonly method?: string;
  readonly headers?: unknown;
  readonly body?: unknown;
  readonly signal?: AbortSignal | null | undefined;
}

/** For libraries that make their requests with `fetch`: the same client with that interface. */
export const boundedFetch =
  (bounds: Pick<Asking, 'who' | 'timeoutMs' | 'maxBytes'>) =>
  async (url: string | URL, { method, headers, body, signal }: Fetching = {}): Promise<Response> => {
    const {
      status,
      headers: received,
      text,
    } = await request(String(url), {
      ...bounds,
      via: 'proxy',
      gate: undefined,
      ...(method !== undefined && { method }),
      headers: Object.fromEntries(new Headers(headers as ConstructorParameters<typeof Headers>[0])),
      body: body === undefined || body === null ? undefined : String(body),
      signal: signal ?? undefined,
    });
    const isEmpty = status === 204 || status === 205 || status === 304;
    const pairs = Object.entries(received).map(([name, value]): [string, string] => [name, String(value)]);
    return new Response(isEmpty ? null : text, { status, headers: pairs });
  };

function send(
  target: URL,
  { method = 'GET', headers, body, via, rule, lookup = resolve }: Asking,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const bytes = body === undefined ? undefined : Buffer.from(body);
  return new Promise((settle, reject) => {
    const made: ClientRequest = (target.protocol === 'https:' ? httpsRequest : httpRequest)(target, {
      method,
      agent: (via === 'proxy' && proxyAgentOf(target)) || false,
      headers: { ...headers, ...(bytes && { 'content-length': bytes.length }) },
      signal,
      ...(rule && { lookup: guarded(rule, lookup) }),
    });
    // Once there is a response, reading it reports a broken connection.
    made.on('error', reject);
    made.on('response', settle);
    // Node closes a connection that switches to another protocol, without an error or a response.
    made.on('close', () => reject(new Error('the connection was closed without a response')));
    if (!rule) {
      made.end(bytes);
      return;
    }
    made.on('socket', (socket) => {
      // Literal addresses are not looked up, so the connected address is checked too, whichever way it was found.
      socket.on('connect', () => {
        const { remoteAddress } = socket;
        if (remoteAddress === undefined || !rule.allows(remoteAddress)) made.destroy(refused(hostOf(target), rule));
        else made.end(bytes);
      });
    });
  });
}

/** Looks up a name, and refuses it if any of its addresses is not allowed. */
const guarded =
  (rule: AddressRule, lookup: typeof resolve): LookupFunction =>
  (host, { family, hints, all }: LookupOptions, callback) => {
    const asked = {
      all: true as const,
      ...(family !== undefined && { family }),
      ...(hints !== undefined && { hints }),
    };
    lookup(host, asked, (error, addresses: LookupAddress[]) => {
      if (error) return callback(error, '');
      const [first] = addresses;
      if (!first || addresses.some(({ address }) => isIP(address) === 0 || !rule.allows(address)))
        return callback(refused(host, rule), '');
      if (all) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };

const refused = (host: string, { allowed }: AddressRule) =>
  new OutgoingError('address', `${host} does not resolve to ${allowed}.`);

/** The body as text. Leaving the loop ends the connection. */
async function textOf(body: IncomingMessage, maxBytes: number, beginning: boolean, who: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes < maxBytes || (bytes === maxBytes && !beginning)) continue;
      if (beginning) break;
      throw new OutgoingError('large', `${who} sent more than ${maxBytes} bytes.`);
    }
  } catch (error) {
    if (!beginning) throw error;
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The cause of an error below HTTP. The error's message may contain an address, which callers must not see. */
function codeOf(error: unknown): string {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: { readonly code?: unknown } };
  return String(cause?.code ?? code ?? 'no connection');
}

/** Undefined if the text is not JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
