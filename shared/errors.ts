/**
 * Errors as values with a code and a sentence that says what the reader should do.
 *
 * `AppError` and its subclasses become HTTP responses (`api/http/errors.ts`); the errors of the log are part of its
 * port.
 */

export type ErrorStatus = 400 | 401 | 403 | 404 | 405 | 409 | 413 | 415 | 422 | 429 | 500 | 502 | 503 | 504;

export interface ErrorExtras {
  /** `<dotted.path>: <reason>`, one per finding. */
  readonly details?: readonly string[];
  readonly code?: string;
  readonly hint?: string;
  /** Additional keys of the error body. */
  readonly body?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** An error whose message may be shown to the caller. */
export class AppError extends Error {
  readonly status: ErrorStatus;
  readonly extras: ErrorExtras;
  constructor(status: ErrorStatus, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.name = 'AppError';
    this.status = status;
    this.extras = extras;
  }
}

/** A caller used a resource of another tenant. Such refusals are recorded in the audit trail. */
export class OtherTenant extends AppError {
  constructor(message: string) {
    super(403, message);
    this.name = 'OtherTenant';
  }
}

/** Code of the 409 for a request whose earlier run is still in progress. */
export const RUN_IN_PROGRESS = 'IDEMPOTENCY_IN_PROGRESS';

/**
 * Whether a command was refused: then it has written nothing, and its preparations can be undone. After any other error
 * it may have written. The same is true if another run has taken over the request, because that run continues with the
 * same preparations.
 */
export const isRefusal = (error: unknown): boolean =>
  error instanceof AppError && error.status < 500 && error.extras.code !== RUN_IN_PROGRESS;

/** Code of a refusal because the versions of rows do not reach back as far. */
export const HISTORY_NOT_KEPT = 'HISTORY_NOT_KEPT';

/** Code of a refusal because the contents of events are in a bundle that is not there. */
export const EVENTS_ARCHIVED = 'EVENTS_ARCHIVED';

/** Code of a refusal because read models did not reach the required position in time. */
export const READ_MODEL_BEHIND = 'READ_MODEL_BEHIND';

/**
 * Continues work whose first event is in the log. While read models lag behind, the rest is left to the schedule that
 * resumes it: the caller must not get the impression that nothing has happened.
 */
export async function unlessBehind(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof AppError && error.extras.code === READ_MODEL_BEHIND)) throw error;
  }
}

export const invalid = (message: string, details?: readonly string[]) =>
  new AppError(400, message, details ? { details } : {});
/** The error of one field of a request. */
export const invalidField = (field: string, reason: string) => invalid(`${field}: ${reason}`, [`${field}: ${reason}`]);
export const unauthenticated = (message: string, extras?: ErrorExtras) => new AppError(401, message, extras);
export const forbidden = (message: string, extras?: ErrorExtras) => new AppError(403, message, extras);
export const notFound = (what: string) => new AppError(404, `${what} not found`);
export const conflict = (message: string, extras?: ErrorExtras) => new AppError(409, message, extras);
export const unavailable = (message: string, extras?: ErrorExtras) => new AppError(503, message, extras);

/** A record that has to be there. @throws AppError 404 */
export function orNotFound<T>(record: T | undefined, what: string): T {
  if (record === undefined) throw notFound(what);
  return record;
}

/**
 * The contents of events are in a bundle (`signalbox archive`) that is not there.
 *
 * @param part the name of the bundle, the position before its first event and that of its last, and a time before which
 *   all of them were recorded, Unix ms
 * @param failure why the bundle could not be opened
 */
export function archived(
  part: { readonly name: string; readonly after: number; readonly until: number; readonly before: number },
  failure?: string,
): AppError {
  const { name, after, until, before } = part;
  const recorded = new Date(before).toISOString();
  const why = failure === 'ENOENT' ? 'is not in ARCHIVE_DIR' : `cannot be read in ARCHIVE_DIR (${failure})`;
  return conflict(
    `The events from position ${after + 1} to ${until}, from before ${recorded}, are archived in the bundle ${name}, which ${why} of this process. Put the folder ${name} there.`,
    { code: EVENTS_ARCHIVED, body: { bundle: name, from: after + 1, until, before: recorded } },
  );
}

/** Whether archived events could not be read. */
export const isArchived = (error: unknown): error is AppError =>
  error instanceof AppError && (error.extras.code === EVENTS_ARCHIVED || error instanceof AlteredBundleError);

/** An event in a bundle is not the one that was archived. */
export class AlteredBundleError extends AppError {
  constructor(bundle: string, number: number) {
    super(409, `Event ${number} in the bundle ${bundle} is not what its leaf says: the bundle was altered.`, {
      code: 'BUNDLE_ALTERED',
      hint: `Put an unaltered copy of the bundle in ARCHIVE_DIR. See: signalbox verify --bundle`,
    });
    this.name = 'AlteredBundleError';
  }
}

/**
 * The expectation of an append was not met; nothing was written. `actual` is the stream's revision: -1 for no stream,
 * undefined when the store does not report it.
 */
export class ConflictError extends Error {
  readonly stream: string;
  readonly expected: 'any' | 'none' | number;
  readonly actual: number | undefined;
  constructor(stream: string, expected: 'any' | 'none' | number, actual?: number) {
    super(`stream ${stream}: expected ${expected}, found ${actual ?? 'something else'}`);
    this.name = 'ConflictError';
    this.stream = stream;
    this.expected = expected;
    this.actual = actual;
  }
}

/** An append over the port's size limits; nothing was written. */
export class EventTooLargeError extends Error {
  readonly bytes: number;
  constructor(message: string, bytes: number) {
    super(message);
    this.name = 'EventTooLargeError';
    this.bytes = bytes;
  }
}

/**
 * A position that the log does not have: it is from another log, or from before this log was restored to an earlier
 * state.
 */
export class UnknownPositionError extends Error {
  readonly position: number;
  constructor(position: number, options?: ErrorOptions) {
    super(
      `the log has no position ${position}; that position is from another log, or from before this one was restored`,
      options,
    );
    this.name = 'UnknownPositionError';
    this.position = position;
  }
}

/** An event that this version of Signalbox cannot read: unknown type, newer version, invalid or altered data. */
export class EventUnreadableError extends Error {
  constructor({ type, position }: { readonly type: string; readonly position: number }, reason: unknown) {
    const isError = reason instanceof Error;
    super(
      `event ${type} at position ${position} cannot be read: ${isError ? reason.message : String(reason)}`,
      isError ? { cause: reason } : undefined,
    );
    this.name = 'EventUnreadableError';
  }
}

/**
 * The log could not be reached, or is closed. The outcome of an append is then unknown; repeating the same call is safe
 * and resolves it.
 */
export class LogUnavailableError extends Error {
  /** A sentence about what is wrong with the store, and what to do; undefined: the store does not say. */
  readonly remedy: string | undefined;
  constructor(message: string, options: ErrorOptions & { readonly remedy?: string | undefined } = {}) {
    super(message, options);
    this.name = 'LogUnavailableError';
    this.remedy = options.remedy;
  }
}

/** The configuration is wrong; the message names every bad setting. */
export class ConfigError extends Error {}
