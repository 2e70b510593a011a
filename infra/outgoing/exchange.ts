/**
 * One request over HTTP, with the whole of its response. `fetch` refuses to connect to some eighty ports, because browsers
 * do (https://fetch.spec.whatwg.org/#port-blocking); an address that an operator configures may have any port.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { textOf } from './answers.ts';

export interface Sending {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  /** Bytes of a response. */
  readonly maxBytes: number;
  /** The error for a response of more bytes. */
  readonly tooMuch: () => Error;
}

/**
 * Redirects are not followed, and the connection is used once.
 *
 * @throws what the connection fails with, what `tooMuch` gives; an AbortError once the signal has aborted
 */
export async function exchange(
  url: string,
  { method, headers, body, signal, maxBytes, tooMuch }: Sending,
): Promise<{ readonly status: number; readonly text: string }> {
  const target = new URL(url);
  const bytes = body === undefined ? undefined : Buffer.from(body);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = (target.protocol === 'https:' ? httpsRequest : httpRequest)(target, {
      method,
      agent: false,
      headers: { ...headers, ...(bytes && { 'content-length': bytes.length }) },
      signal,
    });
    sent.on('response', resolve);
    // Once there is a response, reading it reports what breaks off.
    sent.on('error', reject);
    sent.end(bytes);
  });
  return { status: response.statusCode ?? 0, text: await textOf(response, maxBytes, tooMuch) };
}
