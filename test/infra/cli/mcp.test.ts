/** `signalbox mcp`: what it says about settings, messages and services. Under kill -9: `kill.test.ts`. */
import { spawn } from 'node:child_process';
import { expect } from 'chai';
import { mcpUrlOf } from '../../../infra/cli/mcp.ts';
import { runHere } from '../../support/command.ts';
import { closing } from '../../support/fixture.ts';
import { listen } from '../../support/listen.ts';
import { commandLine, runCommand } from '../../support/service-process.ts';

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
