/** Files that routes serve from memory: compressed, with an ETag. */
import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { RequestContext } from './context.ts';
import type { RouteResponse } from './route.ts';
import { limitStall } from './stalled.ts';

const compress = promisify(gzip);

/** A file to serve, kept in memory both plain and compressed. */
export interface Served {
  readonly type: string;
  readonly plain: Buffer;
  readonly packed: Buffer;
  readonly hash: string;
}

export async function prepare(type: string, content: string | Buffer): Promise<Served> {
  const plain = Buffer.from(content);
  const hash = createHash('sha256').update(plain).digest('base64url').slice(0, 16);
  return { type, plain, packed: await compress(plain), hash };
}

/** Calls `make` at the first use, and again only if it failed. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

/** The response for this request: compressed if the client accepts it, and 304 without a body if the client has it. */
export function serve(
  { type, plain, packed, hash }: Served,
  cacheControl: string,
  { req }: RequestContext,
): RouteResponse<never> {
  const takesGzip = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(String(req.headers['accept-encoding'] ?? ''));
  const etag = `"${hash}${takesGzip ? '-gzip' : ''}"`;
  const headers = { 'Cache-Control': cacheControl, ETag: etag, Vary: 'Accept-Encoding' };
  const known = String(req.headers['if-none-match'] ?? '')
    .split(',')
    .map((one) => one.trim().replace(/^W\//, ''));
  if (known.includes(etag)) return { status: 304, text: { type, content: '' }, headers };
  return {
    text: { type, content: takesGzip ? packed : plain },
    headers: takesGzip ? { ...headers, 'Content-Encoding': 'gzip' } : headers,
  };
}

/** The items from the start, including the first one, which was already read. */
export async function* again<T>(first: IteratorResult<T>, rest: AsyncIterator<T>): AsyncGenerator<T> {
  for (let one = first; !one.done; one = await rest.next()) yield one.value;
}

/**
 * Sends a file while its text is produced.
 *
 * @param disposition such as `attachment; filename=tasks.csv`
 * @returns whether the client has got all of it
 * @throws errors of `text`. The connection then breaks, so the client sees that the file is incomplete
 */
export async function sendFile(
  { req, res, stallMs }: Pick<RequestContext, 'req' | 'res' | 'stallMs'>,
  format: 'json' | 'csv',
  disposition: string,
  text: AsyncIterable<string>,
): Promise<boolean> {
  res.setHeader('Content-Type', format === 'csv' ? 'text/csv; charset=utf-8' : 'application/json; charset=utf-8');
  res.setHeader('Content-Disposition', disposition);
  if (req.method === 'HEAD') {
    res.end();
    return true;
  }
  limitStall(res, stallMs);
  try {
    await pipeline(text, res);
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
    return false;
  }
}
