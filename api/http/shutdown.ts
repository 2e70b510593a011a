/** Shutdown of an HTTP server: it accepts nothing new, completes requests in flight, and closes its connections. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Interval between checks for connections whose last response has been sent, milliseconds. */
const LOOK_MS = 20;

/**
 * Tracks the connections of a server; call it before the server listens. The returned function ends the server and
 * resolves when every connection is closed. Requests still in flight after `timeoutMs` are cut off.
 */
export function shutdownOf(server: Server): (timeoutMs: number) => Promise<void> {
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  return (timeoutMs) =>
    new Promise((resolve) => {
      const look = setInterval(() => {
        server.closeIdleConnections();
        // Node counts a connection as busy until its first request has got its response. Browsers and connection pools
        // open some in advance; each would keep the server running for as long as it stays open.
        for (const socket of connections) if (socket.bytesRead === 0) socket.destroy();
      }, LOOK_MS);
      const cut = setTimeout(() => server.closeAllConnections(), timeoutMs);
      server.close(() => {
        clearInterval(look);
        clearTimeout(cut);
        resolve();
      });
    });
}
