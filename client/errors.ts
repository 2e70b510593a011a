/** The fields of the one error class of calls and streams. */

export interface ErrorFields {
  /** HTTP status; 0 if there was no response. */
  readonly status: number;
  /** Error code of the service, such as `BUSY`; `REDIRECTED`; without a response `TIMEOUT`, `UNREACHABLE` or `ABORTED`. */
  readonly code?: string | undefined;
  /** One line per field that is not valid: `<dotted.path>: <reason>`. */
  readonly details?: readonly string[] | undefined;
  /** `X-Request-Id` of the response; the events that the request caused carry the same id. */
  readonly requestId?: string | undefined;
  /** What `Retry-After` asks for, milliseconds. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** The error of a failed call or stream. `message` says what happened and what to change. */
export class SignalboxError extends Error {
  readonly status: number;
  readonly code: string | undefined;
  readonly details: readonly string[];
  readonly requestId: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { status, code, details = [], requestId, retryAfterMs, cause }: ErrorFields) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'SignalboxError';
    this.status = status;
    this.code = code;
    this.details = details;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }
}

/** `Retry-After` (RFC 9110, 10.2.3: seconds or a date) in milliseconds; undefined without one. */
export function retryAfterOf(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,9}$/.test(value.trim())) return Number(value) * 1_000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** The error of a response that is not 2xx. Reads its body. */
export async function errorOf(response: Response): Promise<SignalboxError> {
  const text = await response.text();
  const body = fieldsOf(text);
  const said = typeof body.error === 'string' ? body.error : `The service responded with status ${response.status}.`;
  const retryAfterMs = retryAfterOf(response.headers.get('retry-after'), Date.now());
  const wait =
    response.status === 429 && retryAfterMs ? `Try again in ${Math.ceil(retryAfterMs / 1_000)} s.` : undefined;
  const hint = typeof body.hint === 'string' ? body.hint : wait;
  return new SignalboxError(hint ? `${said} ${hint}` : said, {
    status: response.status,
    code: typeof body.code === 'string' ? body.code : undefined,
    details: Array.isArray(body.details) ? body.details.map(String) : [],
    requestId: response.headers.get('x-request-id') ?? undefined,
    retryAfterMs,
  });
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * The error of a response that redirects; undefined for any other. Browsers hide status and target of a redirect from
 * the page (https://fetch.spec.whatwg.org/#concept-filtered-response-opaque-redirect).
 *
 * @param asked the URL of the request; relative to the page in a browser
 */
export function redirectOf(response: Response, asked: string): SignalboxError | undefined {
  const { status, type, headers } = response;
  if (type !== 'opaqueredirect' && !REDIRECTS.has(status)) return undefined;
  const target = targetOf(headers.get('location'), asked);
  const where = target === undefined ? 'to an address that the platform does not show' : `to ${target}`;
  return new SignalboxError(
    `${asked.split('?')[0]} redirects ${where}. Redirects are not followed; set url to the address of the service itself.`,
    { status, code: 'REDIRECTED' },
  );
}

/** The target without its query, user and password, which may be secret. */
function targetOf(location: string | null, asked: string): string | undefined {
  if (location === null || location === '') return undefined;
  if (!URL.canParse(location, asked)) return location.split('?')[0];
  const { protocol, host, pathname } = new URL(location, asked);
  return `${protocol}//${host}${pathname}`;
}

/** A proxy may respond with any text. */
function fieldsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The error of a request without a response. */
export function failureOf(
  cause: unknown,
  { aborted, timeoutMs }: { aborted: boolean; timeoutMs: number },
): SignalboxError {
  if (cause instanceof SignalboxError) return cause;
  const fields = { status: 0, cause };
  if (aborted) return new SignalboxError('The call was aborted.', { ...fields, code: 'ABORTED' });
  if ((cause as { name?: unknown } | null)?.name === 'TimeoutError') {
    const message = `No response within ${timeoutMs / 1_000} s. Try again; the service may be busy.`;
    return new SignalboxError(message, { ...fields, code: 'TIMEOUT' });
  }
  const message = 'The service cannot be reached. Check its URL and the connection, then try again.';
  return new SignalboxError(message, { ...fields, code: 'UNREACHABLE' });
}
