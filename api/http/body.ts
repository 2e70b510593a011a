/** Reads the JSON body of a request: directly, or with body-parser (compressed, chunked, other charsets). */
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import express from 'express';
import { invalid } from '../../shared/errors.ts';
import { bodyError } from './errors.ts';

/** Larger bodies are refused with 413. Agent memory may have 524,288 characters. */
const BODY_LIMIT = 2_097_152;

const parser = express.json({
  limit: BODY_LIMIT,
  strict: false,
  type: () => true,
  verify: (_req, _res, bytes, charset) => {
    if (charset === 'utf-8') requireUtf8(bytes);
  },
});

/** Decoding would replace what is not UTF-8, and store another text. @throws AppError 400 */
function requireUtf8(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw invalid('The body is not valid UTF-8; send the JSON in UTF-8.');
}

/** The value of the body; undefined when there is none. @throws AppError 400, 413, 415 */
export async function readJson(req: IncomingMessage, res: ServerResponse): Promise<unknown> {
  // The name without a hyphen is common, and body-parser does not know it.
  const type = req.headers['content-type'];
  if (type !== undefined) req.headers['content-type'] = type.replace(/(charset\s*=\s*"?)utf8\b/i, '$1utf-8');
  if (isPlain(req.headers)) return parsed(await bytesOf(req));
  await new Promise<void>((resolve, reject) => {
    parser(req as express.Request, res as express.Response, (error?: unknown) =>
      error ? reject(bodyError(error, req.headers['content-encoding'])) : resolve(),
    );
  });
  const { body } = req as express.Request;
  // If the connection ends early, the parser skips the body. Without its body the request would mean something else.
  if (body === undefined && announcesBody(req.headers)) throw cutOff();
  // The parser turns an empty body into {}; we treat it as missing.
  return req.headers['content-length'] === '0' ? undefined : body;
}

const cutOff = () =>
  invalid('The connection ended before the body was read; send the request again and wait for the response.');

function announcesBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Plain UTF-8, of a known length within the limit. */
function isPlain(headers: IncomingHttpHeaders): boolean {
  const length = Number(headers['content-length']);
  return (
    length >= 0 &&
    length <= BODY_LIMIT &&
    headers['transfer-encoding'] === undefined &&
    headers['content-encoding'] === undefined &&
    !/charset\s*=(?!\s*"?utf-8"?\s*(?:;|$))/i.test(headers['content-type'] ?? '')
  );
}

/** @throws AppError 400 when the connection ends before the whole body has arrived */
function bytesOf(req: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let ended = false;
    // Runs for every request: creating an error each time, with its stack, took 4 % of a heartbeat.
    const cut = () => {
      if (!ended) reject(cutOff());
    };
    if (req.destroyed) {
      cut();
      return;
    }
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.once('end', () => {
      ended = true;
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
    });
    req.once('error', cut);
    req.once('close', cut);
  });
}

function parsed(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  requireUtf8(bytes);
  const text = bytes.toString('utf8');
  try {
    return JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  } catch (error) {
    throw bodyError({ type: 'entity.parse.failed', message: (error as Error).message }, undefined);
  }
}
