/**
 * Requests to URLs that users give (`shared/ports/outgoing.ts`).
 *
 * Which addresses may be connected to is decided when the connection is made, on the address itself: a name that
 * resolved to a public address when it was configured may resolve to another one now, and an answer of the name server
 * is used only by the connection that it was checked for. A name with several addresses is refused when one of them is.
 *
 * Each request has a connection of its own: nothing is reused that somebody else may have opened.
 */
import { type LookupAddress, type LookupOptions, lookup as resolve } from 'node:dns';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { type AddressRule, createAddressRule, hostOf } from '../../shared/addresses.ts';
import type { Outgoing, OutgoingRequest, OutgoingResult } from '../../shared/ports/outgoing.ts';
import { frontOf } from '../../shared/storable.ts';

export interface OutgoingOptions {
  readonly rule: AddressRule;
  /** For the whole request, milliseconds. */
  readonly timeoutMs: number;
  /** For tests; default: the system's resolver. */
  readonly lookup?: typeof resolve;
}

/** Characters of an answer that are kept. */
export const KEPT_ANSWER = 1_000;
/** Bytes of an answer that are read; more than enough for the characters that are kept. */
const MAX_ANSWER = 8_192;

/** An address that no connection is made to. */
class RefusedAddressError extends Error {}

export function createOutgoing(options: OutgoingOptions): Outgoing {
  return {
    async post(request, signal) {
      const started = performance.now();
      const result = await send(request, options, signal);
      return { ...result, durationMs: Math.round(performance.now() - started) };
    },
  };
}

/** As the deployment has it. */
export const outgoingOf = (config: {
  readonly webhookAllowedNetworks: readonly string[];
  readonly webhookTimeoutMs: number;
}): Outgoing =>
  createOutgoing({ rule: createAddressRule(config.webhookAllowedNetworks), timeoutMs: config.webhookTimeoutMs });

type Ended = Omit<OutgoingResult, 'durationMs'>;

const failed = (error: string): Ended => ({ status: null, body: null, error });

async function send(request: OutgoingRequest, options: OutgoingOptions, signal?: AbortSignal): Promise<Ended> {
  const { rule, timeoutMs } = options;
  signal?.throwIfAborted();
  const fault = rule.fault(request.url);
  if (fault !== undefined) return failed(`The URL ${fault}.`);
  const late = AbortSignal.timeout(timeoutMs);
  try {
    return await exchange(request, options, AbortSignal.any(signal ? [signal, late] : [late]));
  } catch (error) {
    // Its reason is whoever stops the work.
    if (signal?.aborted) throw signal.reason;
    if (late.aborted) return failed(`The receiver did not respond within ${timeoutMs} ms.`);
    if (error instanceof RefusedAddressError) return failed(error.message);
    return failed(`The receiver could not be reached (${codeOf(error)}).`);
  }
}

function exchange(
  { url, headers, body }: OutgoingRequest,
  { rule, lookup = resolve }: OutgoingOptions,
  signal: AbortSignal,
): Promise<Ended> {
  const target = new URL(url);
  const bytes = Buffer.from(body);
  return new Promise((settle, reject) => {
    const made: ClientRequest = (target.protocol === 'https:' ? httpsRequest : httpRequest)(target, {
      method: 'POST',
      // A connection of its own.
      agent: false,
      lookup: guarded(rule, lookup),
      headers: { ...headers, 'content-length': bytes.length },
      signal,
    });
    let answered = false;
    made.on('error', (error) => {
      // Once there is a status, whatever breaks off is only the rest of the answer.
      if (!answered) reject(error);
    });
    made.on('socket', (socket) => {
      // Addresses that are given as such are not looked up, and whatever else may lead past the look-up ends here.
      socket.on('connect', () => {
        const { remoteAddress } = socket;
        if (remoteAddress === undefined || !rule.allows(remoteAddress)) made.destroy(refused(hostOf(target)));
        else made.end(bytes);
      });
    });
    made.on('response', (response) => {
      answered = true;
      const status = response.statusCode ?? 0;
      const redirect = status >= 300 && status < 400;
      beginningOf(response, (answer) => {
        settle({
          status,
          body: answer,
          error: redirect ? `The receiver responded with a redirect (${status}), which is not followed.` : null,
        });
        made.destroy();
      });
    });
  });
}

/** Looks a name up and refuses it when any of its addresses is not allowed. */
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
        return callback(refused(host), '');
      if (all) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };

const refused = (host: string) => new RefusedAddressError(`${host} does not resolve to a public address.`);

/** Calls back once, with the beginning of an answer: at its end, when it is long enough, or when it breaks off. */
function beginningOf(response: IncomingMessage, done: (text: string) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let over = false;
  const end = () => {
    if (over) return;
    over = true;
    done(shortened(Buffer.concat(chunks).toString('utf8')));
  };
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= MAX_ANSWER) end();
  });
  response.on('end', end);
  response.on('error', end);
  response.on('close', end);
}

/** The front of an answer, with characters that cannot be stored replaced. */
function shortened(text: string): string {
  const storable = text.replace(/[\0\p{Surrogate}]/gu, '\uFFFD');
  return storable.length > KEPT_ANSWER ? `${frontOf(storable, KEPT_ANSWER)}...` : storable;
}

/** What went wrong below HTTP. The message may hold an address of the internal network. */
const codeOf = (error: unknown): string => String((error as { readonly code?: unknown }).code ?? 'no connection');
