/** Clients that do not read their response: their connections, and what is buffered for them, end. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The response for which each connection is not read. */
const holders = new WeakMap<Socket, ServerResponse>();

/**
 * Reads nothing from the client while bytes wait for it. Otherwise a client that never reads would keep its connection
 * with a byte now and then, because Node's time-out counts from the last byte in either direction.
 */
export function holdReading(res: ServerResponse, socket: Socket): void {
  holders.set(socket, res);
  socket.pause();
  // Node resumes the socket at the end of a request, which comes after a response that was sent at once.
  setImmediate(() => {
    if (holders.get(socket) === res) socket.pause();
  });
}

/** Reads again, unless the connection is held for the next response on it. */
export function readAgain(res: ServerResponse, socket: Socket): void {
  if (holders.get(socket) !== res) return;
  holders.delete(socket);
  socket.resume();
}

/**
 * Ends the connection when its client accepts no byte of the response for this long. Streams have a limit of their own
 * (`api/stream/connection.ts`).
 *
 * @param ms milliseconds. Node counts from the last bytes that the system has taken, so a slow client is not cut off
 */
export function endWhenStalled(res: ServerResponse, ms: number): void {
  // Before the response is complete, the service may be what is slow.
  res.once('prefinish', () => {
    // The system has taken most responses by now.
    if (res.socket && res.socket.writableLength > 0) limitStall(res, ms);
  });
}

/** The same for a response that is written while it is produced. */
export const limitStall = (res: ServerResponse, ms: number): void => {
  const { socket } = res;
  if (socket) {
    holdReading(res, socket);
    res.once('close', () => readAgain(res, socket));
  }
  res.setTimeout(ms, () => res.destroy());
};
