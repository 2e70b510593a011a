/** Requests to URLs that users provide (`shared/ports/outgoing.ts`): only to addresses that the deployment allows. */
import type { lookup } from 'node:dns';
import { type AddressRule, createAddressRule } from '../../shared/addresses.ts';
import type { Outgoing, OutgoingRequest, OutgoingResult } from '../../shared/ports/outgoing.ts';
import { frontOf, storableText } from '../../shared/storable.ts';
import type { Config } from '../config.ts';
import { type Gate, OutgoingError, request } from './request.ts';

export interface OutgoingOptions {
  readonly rule: AddressRule;
  /** Time-out of the whole request, milliseconds. */
  readonly timeoutMs: number;
  /** For tests; default: the system's resolver. */
  readonly lookup?: typeof lookup;
  readonly gate?: Gate;
}

/** Maximum number of characters of a response that are kept. */
export const KEPT_ANSWER = 1_000;
/** Bytes of a response that are read; more than enough for the characters that are kept. */
const MAX_ANSWER = 8_192;

export function createOutgoing(options: OutgoingOptions): Outgoing {
  return {
    async post(sent, signal) {
      const started = performance.now();
      const result = await send(sent, options, signal);
      return { ...result, durationMs: Math.round(performance.now() - started) };
    },
  };
}

/** With the settings of the deployment. */
export const outgoingOf = (
  config: Pick<Config, 'webhookAllowedNetworks' | 'webhookTimeoutMs'> & { readonly gate?: Gate },
): Outgoing =>
  createOutgoing({
    rule: createAddressRule(config.webhookAllowedNetworks),
    timeoutMs: config.webhookTimeoutMs,
    ...(config.gate && { gate: config.gate }),
  });

type Ended = Omit<OutgoingResult, 'durationMs'>;

const failed = (error: string): Ended => ({ status: null, body: null, error, retryAfter: null });

async function send(
  { url, headers, body }: OutgoingRequest,
  { rule, timeoutMs, lookup, gate }: OutgoingOptions,
  signal?: AbortSignal,
): Promise<Ended> {
  signal?.throwIfAborted();
  const fault = rule.fault(url);
  if (fault !== undefined) return failed(`The URL ${fault}.`);
  const asking = { who: 'The receiver', via: 'direct', method: 'POST', maxBytes: MAX_ANSWER, beginning: true } as const;
  try {
    const {
      status,
      text,
      headers: received,
    } = await request(url, { ...asking, headers, body, signal, timeoutMs, rule, lookup, gate });
    const redirect = status >= 300 && status < 400;
    return {
      status,
      body: shortened(text),
      retryAfter: received['retry-after'] ?? null,
      error: redirect ? `The receiver responded with a redirect (${status}), which is not followed.` : null,
    };
  } catch (error) {
    if (error instanceof OutgoingError) return failed(error.message);
    throw error;
  }
}

function shortened(text: string): string {
  const kept = storableText(text);
  return kept.length > KEPT_ANSWER ? `${frontOf(kept, KEPT_ANSWER)}...` : kept;
}
