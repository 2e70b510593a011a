/** Gateways over HTTP. Redirects are not followed, and responses are read up to a limit. */
import { ADMINS_ADDRESSES } from '../../../shared/addresses.ts';
import { GatewayError, type GatewayHealth, type Gateways } from '../../../shared/ports/admin/gateways.ts';
import { BODY_BOUNDS, frontOf, storableText, storageProblem } from '../../../shared/storable.ts';
import { type Asking, type Gate, OutgoingError, parsed, request } from '../request.ts';

/** Time-out of a whole request, milliseconds. */
export const GATEWAY_TIMEOUT_MS = 5_000;
/** Bytes of a response. */
const MAX_BYTES = 1_048_576;
/** Characters. */
const MAX_VERSION = 100;

/** Replaces the scheme of a WebSocket address with that of HTTP. */
const httpUrl = (base: string, path: string): string => `${base.replace(/^ws/, 'http')}${path}`;

export function createGateways({
  timeoutMs: usual = GATEWAY_TIMEOUT_MS,
  gate,
}: {
  readonly timeoutMs?: number;
  readonly gate?: Gate;
} = {}): Gateways {
  async function ask(
    url: string,
    sending: Pick<Asking, 'method' | 'headers' | 'body'>,
    timeoutMs = usual,
  ): Promise<{ readonly status: number; readonly text: string }> {
    try {
      return await request(url, {
        who: 'The gateway',
        via: 'direct',
        ...sending,
        timeoutMs,
        maxBytes: MAX_BYTES,
        rule: ADMINS_ADDRESSES,
        gate,
      });
    } catch (error) {
      if (!(error instanceof OutgoingError)) throw error;
      throw new GatewayError(error.message, error.fault === 'late', { cause: error });
    }
  }

  return {
    async probe(url): Promise<GatewayHealth> {
      const started = performance.now();
      try {
        const asking = { method: 'GET', headers: { accept: 'application/json' } };
        const { status, text } = await ask(httpUrl(url, '/health'), asking);
        const latency = Math.round(performance.now() - started);
        const version = versionOf(parsed(text));
        if (status >= 200 && status < 300) return { status: 'online', latency, error: null, version };
        return { status: 'error', latency, error: `HTTP ${status}`, version };
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        return { status: 'offline', latency: null, error: error.late ? 'timeout' : error.message, version: null };
      }
    },
    async call({ url, token }, { method, path, body, timeoutMs }) {
      const sending = {
        method,
        headers: {
          accept: 'application/json',
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(token !== null && { authorization: `Bearer ${token}` }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      };
      const { status, text } = await ask(httpUrl(url, path), sending, timeoutMs);
      return { status, body: bodyOf(text) };
    },
  };
}

/** A response that is nested deeper than a request body may be could not be passed on as JSON. */
function bodyOf(text: string): unknown {
  const body = parsed(text);
  return storageProblem(body, BODY_BOUNDS) ? undefined : body;
}

function versionOf(body: unknown): string | null {
  const version = (body as { readonly version?: unknown } | null | undefined)?.version;
  return typeof version === 'string' ? frontOf(storableText(version), MAX_VERSION) : null;
}
