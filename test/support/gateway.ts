/**
 * A local server that plays a gateway: healthy, broken or silent, with commands that wait for an approval, sessions, and a
 * configuration.
 */
import type { IncomingMessage } from 'node:http';
import { listen } from './listen.ts';

export interface FakeGateway {
  readonly url: string;
  /** What it does from now on; `silent`: it takes requests and never answers. */
  mode: 'well' | 'broken' | 'silent' | 'redirects';
  /** What it lists as its sessions; others it does not know. */
  sessions: readonly unknown[];
  /** A text in what it says about its configuration. */
  mark: string;
  /** Requests it has had: method, path, authorization, body. */
  readonly seen: { readonly line: string; readonly authorization: string | undefined; readonly body: string }[];
  close(): Promise<void>;
}

/** What it answers to requests for its sessions and its configuration; undefined: the request is for something else. */
function answerTo(
  { sessions, mark }: FakeGateway,
  method: string,
  path: string,
  body: string,
): { readonly status?: number; readonly body: unknown } | undefined {
  if (path === '/api/config/schema') return { body: { type: 'object', title: mark } };
  if (path === '/api/config/apply') return { body: { restarted: true, hash: JSON.parse(body).hash, token: mark } };
  if (path === '/api/system/update') return { body: { version: '2.5.0' } };
  if (path === '/api/sessions') return { body: { sessions } };
  const [, named] = /^\/api\/sessions\/([^/]+)(\/control)?$/.exec(path) ?? [];
  if (named === undefined) return undefined;
  const session = decodeURIComponent(named);
  const known = (sessions as { readonly key?: unknown; readonly sessionId?: unknown }[]).some(
    ({ key, sessionId }) => key === session || sessionId === session,
  );
  if (!known) return { status: 404, body: { error: 'no such session' } };
  return { body: { done: `${method} ${session}`, ...(body !== '' && JSON.parse(body)) } };
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of req) text += chunk;
  return text;
}

export async function startFakeGateway(): Promise<FakeGateway> {
  const server = await listen((req, res) => {
    bodyOf(req).then(
      (body) => {
        gateway.seen.push({ line: `${req.method} ${req.url}`, authorization: req.headers.authorization, body });
        if (gateway.mode === 'silent') return;
        res.setHeader('Content-Type', 'application/json');
        if (gateway.mode === 'redirects') res.setHeader('Location', 'http://127.0.0.1:1/');
        res.statusCode = { well: 200, broken: 500, redirects: 302 }[gateway.mode];
        const answer = answerTo(gateway, req.method ?? '', req.url ?? '', body);
        if (answer) {
          res.statusCode = gateway.mode === 'well' ? (answer.status ?? 200) : res.statusCode;
          res.end(JSON.stringify(gateway.mode === 'well' ? answer.body : { error: 'out of order' }));
        } else if (req.url?.endsWith('/health')) res.end(JSON.stringify({ ok: true, version: '2.4.0' }));
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
  const gateway: FakeGateway = {
    url: server.url,
    mode: 'well',
    sessions: [],
    mark: 'gateway',
    seen: [],
    close: server.close,
  };
  return gateway;
}
