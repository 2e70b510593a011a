/** Files that routes serve from memory: compressed, with an ETag. */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Exchange } from './exchange.ts';
import type { Answer } from './route.ts';

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
export function serve({ type, plain, packed, hash }: Served, cacheControl: string, { req }: Exchange): Answer<never> {
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
