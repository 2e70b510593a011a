/** The port of gateways: the HTTP servers that agents are reached through. Only addresses that an admin configured are called. */

export const GATEWAY_STATUSES = ['unknown', 'online', 'offline', 'error'] as const;
export type GatewayStatus = (typeof GATEWAY_STATUSES)[number];

/** What a probe of a gateway's health found. */
export interface GatewayHealth {
  readonly status: Exclude<GatewayStatus, 'unknown'>;
  /** Milliseconds; null when there was no answer. */
  readonly latency: number | null;
  /** Why it is not online; null when it is. */
  readonly error: string | null;
  /** As the gateway reports it. */
  readonly version: string | null;
}

/** What a gateway answered. */
export interface GatewayAnswer {
  readonly status: number;
  /** Parsed JSON; undefined when it was none. */
  readonly body: unknown;
}

/** A gateway did not answer. The message can be shown. */
export class GatewayError extends Error {
  /** Whether it took too long; otherwise it could not be reached. */
  readonly late: boolean;
  constructor(message: string, late: boolean, options?: ErrorOptions) {
    super(message, options);
    this.name = 'GatewayError';
    this.late = late;
  }
}

export interface Gateways {
  /** Never rejects. @param url base URL of the gateway */
  probe(url: string): Promise<GatewayHealth>;
  /** Calls the gateway with its token. @throws GatewayError */
  call(
    gateway: { readonly url: string; readonly token: string | null },
    request: { readonly method: 'GET' | 'POST'; readonly path: string; readonly body?: unknown },
  ): Promise<GatewayAnswer>;
}
