/** The port of gateways: the HTTP servers through which agents are reached. Only configured addresses are called. */

export const GATEWAY_STATUSES = ['unknown', 'online', 'offline', 'error'] as const;
export type GatewayStatus = (typeof GATEWAY_STATUSES)[number];

/** The result of a health probe of a gateway. */
export interface GatewayHealth {
  readonly status: Exclude<GatewayStatus, 'unknown'>;
  /** Milliseconds; null when there was no response. */
  readonly latency: number | null;
  /** Why it is not online; null when it is. */
  readonly error: string | null;
  /** As the gateway reports it. */
  readonly version: string | null;
}

/** What a gateway answered. */
export interface GatewayResponse {
  readonly status: number;
  /** Parsed JSON; undefined if it is not JSON, or nested more than 100 levels deep. */
  readonly body: unknown;
}

/** A gateway did not respond. The message may be shown. */
export class GatewayError extends Error {
  /** Whether it took too long; otherwise it was unreachable. */
  readonly late: boolean;
  constructor(message: string, late: boolean, options?: ErrorOptions) {
    super(message, options);
    this.name = 'GatewayError';
    this.late = late;
  }
}

/** A session at a gateway, as the gateway reports it. */
export interface GatewaySession {
  readonly id: string;
  readonly key: string;
  readonly agent: string;
  readonly kind: string;
  readonly model: string;
  readonly channel: string;
  readonly label: string | null;
  /** Levels of thinking, verbose and reasoning; only those that are set. */
  readonly settings: Readonly<Record<string, string>>;
  /** Tokens of the context that are in use. */
  readonly usedTokens: number;
  /** Tokens that the context can hold. */
  readonly contextTokens: number;
  /** Unix milliseconds; 0: not reported by the gateway. */
  readonly updatedAt: number;
}

export interface GatewayRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  /** Time limit of the whole request, milliseconds; default: that of all other requests. */
  readonly timeoutMs?: number;
}

export interface Gateways {
  /** Never rejects. @param url base URL of the gateway */
  probe(url: string): Promise<GatewayHealth>;
  /** Calls the gateway with its token. @throws GatewayError */
  call(
    gateway: { readonly url: string; readonly token: string | null },
    request: GatewayRequest,
  ): Promise<GatewayResponse>;
}
