/** A local server that plays a gateway: healthy, broken or silent, with commands that wait for an approval. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FakeGateway {
  readonly url: string;
  /** What it does from now on; `silent`: it takes requests and never answers. */
  mode: 'well' | 'broken' | 'silent' | 'redirects';
  /** Requests it has had: method, path, authorization, body. */
  readonly seen: { readonly line: string; readonly authorization: string | undefined; readonly body: string }[];
  close(): Promise<void>;
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of req) text += chunk;
  return text;
}

export async function startFakeGateway(): Promise<FakeGateway> {
  const server = createServer((req, res) => {
    bodyOf(req).then(
      (body) => {
        gateway.seen.push({ line: `${req.method} ${req.url}`, authorization: req.headers.authorization, body });
        if (gateway.mode === 'silent') return;
        res.setHeader('Content-Type', 'application/json');
        if (gateway.mode === 'redirects') res.setHeader('Location', 'http://127.0.0.1:1/');
        res.statusCode = { well: 200, broken: 500, redirects: 302 }[gateway.mode];
        if (req.url?.endsWith('/health')) res.end(JSON.stringify({ ok: true, version: '2.4.0' }));
        else if (/\/messages$/.test(req.url ?? '')) res.end(JSON.stringify({ ok: true, runId: 'run-1' }));
        else if (req.method === 'GET')
          res.end(JSON.stringify({ approvals: [{ id: 'a1', command: 'ls' }, 'no object'] }));
        else if (JSON.parse(body).id === 'unknown') {
          res.statusCode = 404;
          res.end(JSON.stringify({ error: 'no such approval' }));
        } else res.end(JSON.stringify({ ok: true, id: JSON.parse(body).id }));
      },
      () => res.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const gateway: FakeGateway = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    mode: 'well',
    seen: [],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return gateway;
}
