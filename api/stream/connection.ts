/**
 * A client's connection: what waits in it, and whether the client still reads.
 *
 * Node holds what the client's side does not take. How much that is, and since when, is known from the callbacks of
 * the writes; whether a large piece is at least moving, Node's own time-out of the socket looks at.
 */
import type { ServerResponse } from 'node:http';

export interface Connection {
  /** Aborted as soon as the stream is over, from whichever side. */
  readonly closed: AbortSignal;
  /** Bytes written that have not left this process. */
  readonly waiting: number;
  /** Since when something has been waiting without a break, Unix milliseconds; undefined: nothing waits. */
  readonly waitingSince: number | undefined;
  /** @param done called once, when the bytes have left or the connection is closed */
  send(bytes: Buffer, done?: () => void): void;
  /** Resolves when nothing waits any more, or the connection is closed. */
  drained(): Promise<void>;
  /** Ends the stream behind what was sent; at once when the client is not reading. */
  end(comment?: string): void;
  /** Cuts it off. What waited is given up. */
  drop(): void;
}

/**
 * @param stallMs a client that takes nothing for this long while something waits is cut off; `stalled` is called then
 */
export function openConnection(res: ServerResponse, stallMs: number, stalled: () => void): Connection {
  const closing = new AbortController();
  const { socket } = res.req;
  const pending = new Set<() => void>();
  let waiting = 0;
  let waitingSince: number | undefined;
  let wakers: (() => void)[] = [];

  const wake = () => {
    const woken = wakers;
    wakers = [];
    for (const one of woken) one();
  };
  const close = () => {
    if (closing.signal.aborted) return;
    socket.off('close', close);
    closing.abort();
    for (const settle of [...pending]) settle();
    wake();
  };
  res.once('close', close);
  // A response that waits behind another one of its connection hears nothing of the end of it.
  socket.once('close', close);
  // Whatever goes wrong with the connection closes it.
  res.on('error', close);
  if (socket.destroyed) close();

  const connection: Connection = {
    closed: closing.signal,
    get waiting() {
      return waiting;
    },
    get waitingSince() {
      return waitingSince;
    },
    send(bytes, done) {
      if (closing.signal.aborted) {
        done?.();
        return;
      }
      waiting += bytes.length;
      waitingSince ??= Date.now();
      const settle = () => {
        if (!pending.delete(settle)) return;
        waiting -= bytes.length;
        done?.();
        if (waiting > 0) return;
        waitingSince = undefined;
        wake();
      };
      pending.add(settle);
      res.write(bytes, settle);
    },
    drained() {
      if (waiting === 0 || closing.signal.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        wakers.push(resolve);
      });
    },
    end(comment) {
      if (closing.signal.aborted) return;
      const reading = waiting === 0;
      close();
      if (reading) res.end(comment === undefined ? undefined : `: ${comment}\n\n`);
      else res.destroy();
    },
    drop() {
      close();
      res.destroy();
    },
  };
  res.setTimeout(stallMs, () => {
    if (waiting === 0) return;
    stalled();
    connection.drop();
  });
  return connection;
}
