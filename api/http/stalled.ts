/** Clients that do not read their response: their connections, and what is buffered for them, end. */
import type { ServerResponse } from 'node:http';

/**
 * Ends the connection when its client accepts no byte of the response for this long. Streams have a limit of their own
 * (`api/stream/connection.ts`).
 *
 * @param ms milliseconds. Node counts from the last bytes that the system has taken, so a slow client is not cut off
 */
export function endWhenStalled(res: ServerResponse, ms: number): void {
  // Before the response is complete, the service may be what is slow.
  res.once('prefinish', () => limitStall(res, ms));
}

/** The same for a response that is written while it is produced. */
export const limitStall = (res: ServerResponse, ms: number): void => {
  res.setTimeout(ms, () => res.destroy());
};
