/** Turns failures into `{error, details?, code?}` with the right status. Internal details never leave this file. */
import type { ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { ZodError } from 'zod';
import { AppError } from '../../shared/errors.ts';
import { frontOf } from '../../shared/storable.ts';
import { storeFaultOf } from '../../shared/store-faults.ts';
import type { RequestContext } from './context.ts';

/**
 * `<dotted.path>: <reason>` per finding; findings about the body as a whole have the path `body`. For an integer beyond
 * 2^53, zod reports that bound first, and then the field's own, which is the one to observe.
 */
export function detailsOf({ issues }: ZodError): string[] {
  const fieldOf = (path: readonly PropertyKey[]) => path.map((part) => frontOf(String(part), 100)).join('.') || 'body';
  const findings = issues.map((issue) => ({ ...issue, field: fieldOf(issue.path) }));
  return findings
    .filter((issue, at) => !('note' in issue && findings[at + 1]?.field === issue.field))
    .slice(0, 50)
    .map(({ field, message }) => `${field}: ${message}`);
}

/** Clients often show only `error`, so it carries the first finding. */
function validationError(error: ZodError): AppError {
  const details = detailsOf(error);
  return new AppError(400, details[0] ?? 'The request is not valid.', { details });
}

/**
 * Translates errors of body-parser (https://github.com/expressjs/body-parser#errors) and of decompression, which have
 * no `type`.
 */
export function bodyError(error: unknown, encoding: string | undefined): AppError {
  if (error instanceof AppError) return error;
  const { status, type, message } = error as { status?: unknown; type?: unknown; message?: unknown };
  if (type === 'entity.too.large') return new AppError(413, 'The request body is larger than 2 MB; send less.');
  if (type === 'entity.parse.failed')
    return new AppError(400, `JSON body required: what was sent is not valid JSON (${message}); send one JSON object.`);
  if (type === 'charset.unsupported' || type === 'encoding.unsupported')
    return new AppError(
      415,
      `The body cannot be read: ${message}; send UTF-8 JSON, plain or compressed with gzip, deflate or br.`,
    );
  if (typeof type === 'string' && (status === 400 || status === 413))
    return new AppError(status, `The body could not be read: ${message}`);
  if (status === 400 && encoding !== undefined) {
    return new AppError(400, `The body does not match its Content-Encoding (${encoding.slice(0, 60)}): ${message}.`);
  }
  return asAppError(error);
}

export function asAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof ZodError) return validationError(error);
  // PostgreSQL: character_not_in_repertoire, untranslatable_character.
  if (['22021', '22P05'].includes(String((error as { code?: unknown }).code))) {
    return new AppError(400, 'Text must not contain the character U+0000; remove it.');
  }
  if (error instanceof URIError) return new AppError(400, 'The path contains invalid percent-encoding.');
  const fault = storeFaultOf(error);
  if (fault) {
    const headers = { 'Retry-After': String(fault.retrySeconds) };
    return new AppError(503, fault.message, { code: fault.code, headers, cause: error });
  }
  return sentError(error) ?? new AppError(500, 'Internal server error', { cause: error });
}

/** An error of Express middleware that is meant for the client (https://github.com/jshttp/http-errors). */
function sentError(error: unknown): AppError | undefined {
  if (!(error instanceof Error) || !('status' in error) || !('expose' in error)) return undefined;
  const { status, expose, message } = error;
  return expose === true && typeof status === 'number' && status >= 400 && status < 500
    ? new AppError(status as AppError['status'], message)
    : undefined;
}

export function sendError(context: RequestContext, error: unknown, log: Logger): void {
  const failure = asAppError(error);
  const { res } = context;
  if (failure.status >= 500) {
    const { cause, code } = failure.extras;
    const what = failure.status === 503 ? `request failed: ${failure.message}` : 'request failed';
    log.error({ err: cause ?? failure, code, requestId: context.id, route: context.route }, what);
  }
  if (res.headersSent) {
    // Too late for a status: cut the connection, so that the client does not mistake a partial response for a whole one.
    res.destroy();
    return;
  }
  // RFC 9110, section 15.5.2.
  if (failure.status === 401) res.setHeader('WWW-Authenticate', 'Bearer realm="signalbox"');
  for (const [name, value] of Object.entries(failure.extras.headers ?? {})) res.setHeader(name, value);
  const { details, code, hint, body } = failure.extras;
  sendJson(res, failure.status, {
    error: failure.message,
    ...(details && { details }),
    ...(code && { code }),
    ...(hint && { hint }),
    ...body,
  });
}

export function sendJson(res: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  res.statusCode = status;
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  res.setHeader('Content-Length', Buffer.byteLength(text));
  // A string, because Node sends it together with the headers.
  res.end(text);
}

/** Sends a text or a file unchanged, and any other body as JSON. */
export function sendContent(
  res: ServerResponse,
  status: number,
  {
    body,
    text,
  }: { readonly body?: unknown; readonly text?: { readonly type: string; readonly content: string | Buffer } },
): void {
  if (!text) {
    sendJson(res, status, body);
    return;
  }
  res.statusCode = status;
  res.setHeader('Content-Type', text.type);
  res.end(text.content);
}
