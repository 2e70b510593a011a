/** A TCP proxy in front of a store, for tests: it simulates network failures between a process and a store. */
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface TcpProxy {
  readonly port: number;
  /** Connections that are open now. */
  connections(): number;
  /** Breaks every connection; new ones are taken at once. */
  cut(): void;
  /** Breaks every connection and refuses new ones, like a host on which the store is not running. */
  stop(): Promise<void>;
  /** Takes connections again. */
  start(): Promise<void>;
  /** Keeps connections and accepts new ones, but transfers nothing, like a network that drops packets. */
  freeze(): void;
  /** Transfers what was held back, and everything from then on. */
  thaw(): void;
  /** Holds every piece back for this many milliseconds, in both directions; 0 for none. */
  delay(ms: number): void;
  close(): Promise<void>;
}

/** @param target where the store listens; connections to a stopped store are refused, as by a host */
export async function startProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const sockets = new Set<net.Socket>();
  let frozen = false;
  let delayMs = 0;

  function pipe(from: net.Socket, to: net.Socket): void {
    sockets.add(from);
    from.setNoDelay(true);
    let queued = 0;
    let last = Promise.resolve();
    from.on('data', (bytes) => {
      const pass = () => {
        if (to.destroyed || to.write(bytes)) return;
        from.pause();
        to.once('drain', () => frozen || from.resume());
      };
      // One after the other, also when the delay has changed meanwhile: TCP keeps the order.
      const due = Date.now() + delayMs;
      if (delayMs === 0 && queued === 0) {
        pass();
        return;
      }
      queued++;
      last = last.then(async () => {
        await sleep(Math.max(0, due - Date.now()));
        queued--;
        pass();
      });
    });
    // Whatever breaks one side breaks the other: that is all that a client could know of it.
    from.on('error', () => to.destroy());
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
    if (frozen) from.pause();
  }

  const server = net.createServer((near) => {
    const far = net.connect(target.port, target.host);
    pipe(near, far);
    pipe(far, near);
  });
  const listen = (port: number) =>
    new Promise<number>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', () => {
        server.off('error', reject);
        resolve((server.address() as net.AddressInfo).port);
      });
    });
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const stop = async () => {
    if (!server.listening) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    cut();
    await closed;
  };
  const port = await listen(0);
  return {
    port,
    connections: () => sockets.size / 2,
    cut,
    stop,
    async start() {
      if (!server.listening) await listen(port);
    },
    freeze() {
      frozen = true;
      for (const socket of sockets) socket.pause();
    },
    thaw() {
      frozen = false;
      for (const socket of sockets) socket.resume();
    },
    delay(ms) {
      delayMs = ms;
    },
    close: stop,
  };
}
