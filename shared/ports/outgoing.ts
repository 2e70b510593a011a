/**
 * The port of requests to URLs that users give, such as those of webhooks.
 */

export interface OutgoingRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** How a request ended. Without an answer there is an `error`; it can be shown. */
export interface OutgoingResult {
  readonly status: number | null;
  /** The beginning of the answer's body. */
  readonly body: string | null;
  readonly error: string | null;
  readonly durationMs: number;
}

export interface Outgoing {
  /**
   * Posts to a URL that a user has given. Only public addresses are connected to, unless the operator has allowed
   * others; redirects are not followed; it takes no longer than the configured time-out.
   *
   * @throws what the signal aborts with; every other failure is a result
   */
  post(request: OutgoingRequest, signal?: AbortSignal): Promise<OutgoingResult>;
}
