/**
 * The Model Context Protocol while the service is killed and started again: clients keep their connection and go on, over
 * HTTP and through `signalbox mcp`.
 */
import { spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { expect } from 'chai';
import { mcpUrlOf } from '../../infra/cli/mcp.ts';
import { runHere } from '../support/command.ts';
import { closing } from '../support/fixture.ts';
import { listen } from '../support/listen.ts';
import { connectMcp } from '../support/mcp.ts';
import { call } from '../support/service.ts';
import {
  commandLine,
  freePort,
  KEY,
  runCommand,
  type ServiceProcess,
  startProcess,
} from '../support/service-process.ts';
import { dataDirectory } from '../support/template.ts';

/** A client that has begun to work, in the order of what happens to the service. */
interface Working {
  /** Starts calls, and resolves with the first of them: then the service is killed. */
  inFlight?(): Promise<unknown>;
  whileGone?(): Promise<void>;
  /** Ends the work. */
  onceBack(): Promise<void>;
}

describe('MCP: restart after the service is killed', function () {
  this.timeout(180_000);
  let directory: string;
  let service: ServiceProcess | undefined;
  let port: string;
  const clients: { close(): Promise<void> }[] = [];
  const start = async () => {
    service = await startProcess(directory, { PORT: port });
    return service;
  };
  const kill = () => (service as ServiceProcess).stop('SIGKILL');

  const ask = (method: string, path: string, body?: unknown) =>
    call(service as ServiceProcess, method, path, body, { 'x-api-key': KEY });
  /** An agent with a key, and a task in the queue. */
  async function prepare(name: string) {
    const { agent } = (await ask('POST', '/api/agents', { name, role: 'coder' })).body;
    const { api_key: key } = (await ask('POST', `/api/agents/${agent.id}/keys`, { name: 'k', scopes: ['operator'] }))
      .body;
    const { task } = (await ask('POST', '/api/tasks', { title: `of ${name}`, assigned_to: name })).body;
    return { key: key as string, task: task.id as number };
  }
  /** How many comments a task has, and its status. */
  async function stateOf(task: number) {
    const { comments } = (await ask('GET', `/api/tasks/${task}/comments`)).body;
    return [(await ask('GET', `/api/tasks/${task}`)).body.task.status, comments.length];
  }
  const approve = (taskId: number) => ask('POST', '/api/quality-review', { taskId, status: 'approved', notes: 'fine' });

  async function overHttp(era: '2025' | '2026'): Promise<Working> {
    const { key, task } = await prepare(`http-${era}`);
    const agent = await connectMcp((service as ServiceProcess).url, { 'x-api-key': key }, era);
    clients.push(agent);
    expect((await agent.value('next_task')).task.id).to.equal(task);
    const comment = () =>
      agent.value('comment_on_task', { id: task, content: 'begun', idempotency_key: `begun-${era}` });
    await comment();
    return {
      async whileGone() {
        expect(await agent.call('who_am_i').catch((error: Error) => error)).to.be.an('error');
      },
      async onceBack() {
        // It cannot know whether the call before the kill was carried out: it repeats it.
        await comment();
        const next = await agent.value('next_task');
        expect([next.reason, next.task.id]).to.deep.equal(['continue_current', task]);
        await agent.value('ask_for_review', { id: task, resolution: 'done' });
        await approve(task);
        expect(await stateOf(task)).to.deep.equal(['done', 1]);
      },
    };
  }

  async function throughCommand(mode: 'auto' | 'legacy'): Promise<Working> {
    const { key, task } = await prepare(`stdio-${mode}`);
    const [command = '', ...args] = [process.execPath, ...commandLine('mcp', '--url', `http://127.0.0.1:${port}`)];
    const transport = new StdioClientTransport({ command, args, env: { SIGNALBOX_KEY: key }, stderr: 'inherit' });
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    clients.push(client);
    await client.connect(transport);
    const value = async (name: string, given: Record<string, unknown> = {}) => {
      const result = (await client.callTool({ name, arguments: given }, { timeout: 150_000 })) as Record<
        string,
        unknown
      >;
      expect(result.isError, JSON.stringify(result)).not.to.equal(true);
      // biome-ignore lint/suspicious/noExplicitAny: results are looked into freely.
      return result.structuredContent as any;
    };
    expect((await client.listTools()).tools.map(({ name }) => name)).to.include('next_task');
    expect((await value('next_task')).task.id).to.equal(task);
    let comments: Promise<unknown>[] = [];
    return {
      // Some of them may have been carried out.
      inFlight() {
        comments = Array.from({ length: 10 }, (_, n) => value('comment_on_task', { id: task, content: `no. ${n}` }));
        return Promise.race(comments);
      },
      async onceBack() {
        await Promise.all(comments);
        const { contents } = await client.readResource({ uri: `task://${task}` });
        expect(JSON.parse((contents[0] as { text: string }).text).task).to.include({ status: 'in_progress' });
        await value('ask_for_review', { id: task });
        await approve(task);
        expect(await stateOf(task)).to.deep.equal(['done', 10]);
      },
    };
  }

  const cases = {
    'a client over HTTP continues without reconnecting (revision of 2026)': () => overHttp('2026'),
    'a client over HTTP continues without reconnecting (revision of 2025)': () => overHttp('2025'),
    'a client of signalbox mcp waits until the service is back, and repeats no call (auto)': () =>
      throughCommand('auto'),
    'a client of signalbox mcp waits until the service is back, and repeats no call (legacy)': () =>
      throughCommand('legacy'),
  };
  const working = new Map<string, Working>();
  before(async () => {
    directory = await dataDirectory();
    port = String(await freePort());
    await start();
    for (const [title, begin] of Object.entries(cases)) working.set(title, await begin());
    await Promise.race([...working.values()].flatMap((one) => one.inFlight?.() ?? []));
    await kill();
    for (const one of working.values()) await one.whileGone?.();
    await start();
  });
  after(async () => {
    for (const client of clients) await client.close();
    await service?.stop('SIGKILL');
    await rm(directory, { recursive: true, force: true });
  });

  for (const title of Object.keys(cases)) it(title, () => (working.get(title) as Working).onceBack());
});

describe('signalbox mcp', () => {
  const nowhere = ['mcp', '--url', 'http://127.0.0.1:1'];
  const key = { SIGNALBOX_KEY: 'k' };

  it('reports missing settings', async () => {
    expect(await runHere(nowhere)).to.deep.include({
      code: 1,
      err: 'signalbox: an API key is missing: set SIGNALBOX_KEY, or use --key\n',
    });
    expect((await runHere(['mcp', '--url', 'nowhere'], key)).err).to.match(/--url must be an http or https URL/);
    expect((await runHere(['mcp'], key)).err).to.match(/required option '--url <url>'/);
  });

  it('returns a protocol error for an invalid message, and rejects one that is too large', async () => {
    const { out, code } = await runHere(nowhere, key, 'no json\n\n[]\n');
    expect(code).to.equal(0);
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).error.code),
    ).to.deep.equal([-32_700, -32_600]);
    const large = await runCommand(nowhere, key, 'x'.repeat(2_200_000));
    expect([large.code, large.err]).to.deep.equal([1, 'signalbox: a message on stdin is longer than 2097152 bytes\n']);
  });

  it('reports a redirect with its target, at once', async () => {
    await using server = closing(
      await listen((_, res) => res.writeHead(308, { location: 'https://user:secret@elsewhere.example/mcp?k=1' }).end()),
    );
    const child = spawn(process.execPath, commandLine('mcp', '--url', server.url, '--key', 'k'), {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    child.stdin.end(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })}\n`);
    let text = '';
    for await (const chunk of child.stdout.setEncoding('utf8')) text += chunk;
    expect(JSON.parse(text)).to.deep.equal({
      jsonrpc: '2.0',
      id: 1,
      error: {
        code: -32_603,
        message: `${server.url}/mcp redirects to https://elsewhere.example/mcp, which is not followed; check --url.`,
      },
    });
  });

  it('takes a URL with a path', () => {
    const server = 'http://127.0.0.1:3000';
    const paths = ['', '/', '/signalbox', '/signalbox/', '/a/b//?x=1#y'].map((path) => mcpUrlOf(server + path).href);
    expect(paths).to.deep.equal(
      ['/mcp', '/mcp', '/signalbox/mcp', '/signalbox/mcp', '/a/b/mcp'].map((path) => server + path),
    );
  });

  it('forwards the message of a rejection, and reports a server that is not Signalbox', async () => {
    const replies: (readonly [status: number, body: string])[] = [
      [401, '{"error":"Authentication required"}'],
      [404, '<html>'],
      [200, '{"jsonrpc":"2.0",\n"id":3,"result":{}}'],
    ];
    const asked: string[] = [];
    await using server = closing(
      await listen((req, res) => {
        asked.push(`${req.method} ${req.url}`);
        req.resume().on('end', () => {
          const [status, body] = replies.shift() ?? [500, ''];
          res.writeHead(status).end(body);
        });
      }),
    );
    const child = spawn(process.execPath, commandLine('mcp', '--url', `${server.url}/a/b/`, '--key', 'k'), {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines: string[] = [];
    let text = '';
    for (let id = 1; id <= 3; id++) {
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list' })}\n`);
      while (!text.includes('\n'))
        text += String((await new Promise((resolve) => child.stdout.once('data', resolve))) as Buffer);
      lines.push(text.trim());
      text = '';
    }
    child.stdin.end();
    await new Promise((resolve) => child.once('exit', resolve));
    expect(asked).to.deep.equal(Array(3).fill('POST /a/b/mcp'));
    const [refused, other, fine] = lines.map((line) => JSON.parse(line));
    expect(refused).to.deep.include({
      id: 1,
      error: { code: -32_603, message: 'Authentication required (HTTP 401)' },
    });
    expect(other.error.message).to.match(/HTTP 404 and no message of the protocol; check --url/);
    expect(fine).to.deep.equal({ jsonrpc: '2.0', id: 3, result: {} });
  });
});
