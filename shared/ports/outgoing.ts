/** The port of requests to URLs that users provide, such as those of webhooks. */

export interface OutgoingRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The result of a request. Without a response there is an `error`, which may be shown. */
export interface OutgoingResult {
  readonly status: number | null;
  /** The beginning of the response's body. */
  readonly body: string | null;
  readonly error: string | null;
  readonly durationMs: number;
  /** The header `Retry-After` of the response, as it was sent. */
  readonly retryAfter: string | null;
}

export interface Outgoing {
  /**
   * Posts to a URL that a user has provided. It connects only to public addresses, unless the operator has allowed
   * others, does not follow redirects, and takes no longer than the configured time-out.
   *
   * @throws the reason of the signal; every other failure is a result
   */
  post(request: OutgoingRequest, signal?: AbortSignal): Promise<OutgoingResult>;
}
