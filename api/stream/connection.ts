/**
 * A client's connection: how many bytes wait in it, and whether the client still reads.
 *
 * Node buffers what the client has not read. The write callbacks show how much that is and since when; Node's socket
 * time-out shows whether a large write makes any progress.
 */
import type { ServerResponse } from 'node:http';
import { holdReading, readAgain } from '../http/stalled.ts';

export interface Connection {
  /** Aborted as soon as either side ends the stream. */
  readonly closed: AbortSignal;
  /** Bytes that were written but have not left this process. */
  readonly waiting: number;
  /** Since when bytes have been waiting without a break, Unix milliseconds; undefined when none are. */
  readonly waitingSince: number | undefined;
  /** @param done called once, when the bytes have left or the connection is closed */
  send(bytes: Buffer, done?: () => void): void;
  /** Resolves when nothing is waiting, or the connection is closed. */
  drained(): Promise<void>;
  /** Ends the stream after what was sent, or at once if the client is not reading. */
  end(comment?: string): void;
  /** Cuts the connection. What was waiting is lost. */
  drop(): void;
}

/**
 * @param stallMs a client that reads nothing for this long while bytes are waiting is cut off
 * @param stalled called before the client is cut off
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
  // A response queued behind another one on its connection gets no `close` event of its own.
  socket.once('close', close);
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
        readAgain(res, socket);
        waitingSince = undefined;
        wake();
      };
      pending.add(settle);
      res.write(bytes, settle);
      // A response queued behind another one has no socket yet: what it has written does not wait for the client.
      if (res.socket && socket.writableLength > 0) holdReading(res, socket);
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
