/** What a client sees of a server that shuts down, and what the server waits for. */
import { EventEmitter, once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { shutdownOf } from '../../api/http/shutdown.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';
/** Longer than a test may take: what waits for it fails. */
const NEVER_MS = 600_000;

describe('HTTP server shutdown', () => {
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  async function serve(listener: RequestListener) {
    const server = createServer({ keepAliveTimeout: NEVER_MS }, listener);
    const shutDown = shutdownOf(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return {
      shutDown,
      /** A connection, once the server has it. */
      async open() {
        const accepted = once(server, 'connection');
        const socket = connect(port, '127.0.0.1').setEncoding('utf8');
        sockets.push(socket);
        let received = '';
        socket.on('data', (text) => {
          received += text;
        });
        const closed = new Promise<string>((resolve, reject) => {
          socket.on('error', reject).on('close', () => resolve(received));
        });
        await accepted;
        return { socket, closed };
      },
    };
  }

  it('closes connections that have not been used yet', async () => {
    const server = await serve((_req, res) => res.end('answer'));
    const { closed } = await server.open();
    await server.shutDown(NEVER_MS);
    expect(await closed).to.equal('');
  });

  it('completes requests in flight, then closes keep-alive connections', async () => {
    const requests = new EventEmitter();
    const server = await serve((_req, res) => requests.emit('request', res));
    const { socket, closed } = await server.open();
    const begun = once(requests, 'request');
    socket.write(REQUEST);
    const [response] = (await begun) as [ServerResponse];
    const down = server.shutDown(NEVER_MS);
    response.end('answer');
    await down;
    expect(await closed)
      .to.match(/^HTTP\/1\.1 200 OK/)
      .and.match(/answer$/);
  });

  it('aborts requests that exceed the time limit', async () => {
    const server = await serve((_req, res) => res.write('begun'));
    const { socket, closed } = await server.open();
    const begun = once(socket, 'data');
    socket.write(REQUEST);
    await begun;
    await server.shutDown(1);
    expect(await closed).to.match(/begun/);
  });
});
