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
  /** Parsed JSON; undefined when it was none, or nested more than 100 levels deep. */
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

/** A session that lives at a gateway, as the gateway reports it. */
export interface GatewaySession {
  readonly id: string;
  readonly key: string;
  readonly agent: string;
  readonly kind: string;
  readonly model: string;
  readonly channel: string;
  readonly label: string | null;
  /** Levels of thinking, verbose and reasoning, as far as they are set. */
  readonly settings: Readonly<Record<string, string>>;
  /** Tokens of the context that are in use. */
  readonly usedTokens: number;
  /** Tokens that the context can hold. */
  readonly contextTokens: number;
  /** Unix milliseconds; 0: the gateway does not say. */
  readonly updatedAt: number;
}

export interface GatewayRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  /** Milliseconds that the whole request may take; by default as long as every other. */
  readonly timeoutMs?: number;
}

export interface Gateways {
  /** Never rejects. @param url base URL of the gateway */
  probe(url: string): Promise<GatewayHealth>;
  /** Calls the gateway with its token. @throws GatewayError */
  call(
    gateway: { readonly url: string; readonly token: string | null },
    request: GatewayRequest,
  ): Promise<GatewayAnswer>;
}
