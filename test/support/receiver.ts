/** A receiver of webhooks: it stores every request, and responds as configured. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { listen } from './listen.ts';

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly method: string;
  readonly path: string;
  /** As it was sent. */
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: bodies are looked into freely.
  readonly body: any;
}

/** `hang`: no answer; `drop`: the connection is cut. */
export type Reaction =
  | 'hang'
  | 'drop'
  | { readonly status: number; readonly body?: string; readonly headers?: Readonly<Record<string, string>> };

export interface Receiver {
  readonly url: string;
  readonly port: number;
  readonly requests: Received[];
  /** Requests that deliver events of this type. */
  of(type: string): Received[];
  /** Says what is answered from now on. */
  react(how: (received: Received) => Reaction): void;
  /** Cuts the connections of requests without a response. */
  cut(): void;
  close(): Promise<void>;
}

export const OK: Reaction = { status: 200, body: 'thanks' };

export async function startReceiver(): Promise<Receiver> {
  const requests: Received[] = [];
  const open = new Set<ServerResponse>();
  let react: (received: Received) => Reaction = () => OK;
  const server = await listen((req, res) => {
    open.add(res);
    res.on('close', () => open.delete(res));
    // A sender that gives up while it sends.
    req.on('error', () => res.destroy());
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const { headers, method = '', url = '' } = req;
      const received = { headers, method, path: url, text, body: text === '' ? undefined : JSON.parse(text) };
      requests.push(received);
      const reaction = react(received);
      if (reaction === 'hang') return;
      if (reaction === 'drop') {
        req.socket.destroy();
        return;
      }
      res.writeHead(reaction.status, reaction.headers);
      res.end(reaction.body ?? '');
    });
  });
  const { port } = server;
  const cut = () => {
    for (const res of open) res.destroy();
  };
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    requests,
    of: (type) => requests.filter(({ headers }) => headers['x-mc-event'] === type),
    react(how) {
      react = how;
    },
    cut,
    async close() {
      cut();
      await server.close();
    },
  };
}
