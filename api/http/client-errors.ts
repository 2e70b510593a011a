/**
 * Requests that Node refuses before routing: not HTTP, too large, or too slow. They get the same error body as every
 * other refusal.
 */
import { type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { sendJson } from './errors.ts';

const REFUSALS: Readonly<Record<string, readonly [status: number, message: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The request line and headers are too large together; send fewer or shorter ones.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'The chunk extensions of the body are too large; send the body without them.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request did not arrive in time; send it again.'],
};

function refusalOf(error: NodeJS.ErrnoException & { reason?: unknown }): readonly [status: number, message: string] {
  const known = REFUSALS[error.code ?? ''];
  if (known) return known;
  const reason = typeof error.reason === 'string' ? ` (${error.reason})` : '';
  return [400, `The request is not valid HTTP/1.1${reason}; check its request line, headers and body framing.`];
}

export function handleClientErrors(server: Server, log: Pick<Logger, 'debug'>): void {
  /** The latest response of each connection. */
  const responses = new WeakMap<Duplex, ServerResponse>();
  server.prependListener('request', ({ socket }, response) => responses.set(socket, response));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    log.debug({ err: error }, 'refused what is not a valid request');
    const response = responses.get(socket);
    // Once a response has begun, the client would take a second one for part of it.
    const midway = response?.headersSent === true && !response.writableFinished;
    if (!socket.writable || error.code === 'ECONNRESET' || midway) {
      socket.destroy();
      return;
    }
    const [status, message] = refusalOf(error);
    const body = JSON.stringify({ error: message });
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Cache-Control: no-store',
      'Connection: close',
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
  });
  server.on('checkExpectation', (_req, res) => {
    res.setHeader('Connection', 'close');
    sendJson(res, 417, { error: 'The only expectation supported in `Expect` is 100-continue; leave the header out.' });
  });
}
