/** HTTP servers of tests. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Listening {
  readonly server: Server;
  /** Without a path. */
  readonly url: string;
  readonly port: number;
  /** Ends open connections as well. */
  close(): Promise<void>;
}

/** Listens on 127.0.0.1, on a free port unless one is given. @throws Error if the port is taken */
export async function listen(listener: RequestListener, wanted = 0): Promise<Listening> {
  const server = createServer(listener);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(wanted, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    server,
    url: `http://127.0.0.1:${port}`,
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
