/** How an HTTP server ends: it accepts nothing new, answers what is in flight, and then closes its connections. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** How often connections are looked at whose last response may have gone out, milliseconds. */
const LOOK_MS = 20;

/**
 * Follows the connections of a server; call it before the server listens. The function that it returns ends the server
 * and resolves when every connection is closed. What is still in flight after `timeoutMs` is cut off.
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
        // Node counts a connection as busy until its first request has been answered. Browsers and connection pools open
        // some in advance, and would keep the server for as long as they keep those.
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
