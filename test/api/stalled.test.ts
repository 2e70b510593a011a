/** Clients that do not read their response. */
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { endWhenStalled } from '../../api/http/stalled.ts';
import { openConnection } from '../../api/stream/connection.ts';
import { closing } from '../support/fixture.ts';
import { listen } from '../support/listen.ts';
import { startTestService } from '../support/service.ts';
import { KEY } from '../support/service-process.ts';

/** More than the buffers of both ends of a connection have room for. */
const LARGE = Buffer.alloc(38_000_000, 'x');

/** Sends a request and reads nothing of the response. */
async function askOnly(port: number, head = ''): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.pause();
  socket.write(`GET /api/docs HTTP/1.1\r\nHost: localhost\r\n${head}\r\n`);
  return socket;
}

describe('responses that are not read', function () {
  this.timeout(30_000);

  it('end with their connection after the limit', async () => {
    const ends: Promise<unknown>[] = [];
    await using server = closing(
      await listen((_, res) => {
        ends.push(once(res, 'close'));
        endWhenStalled(res, 300);
        res.end(LARGE);
      }),
    );
    const sockets = await Promise.all(Array.from({ length: 5 }, () => askOnly(server.port)));
    while (ends.length < sockets.length) await once(server.server, 'request');
    await Promise.all(ends);
    for (const socket of sockets) socket.destroy();
  });
  it('end although their client sends something now and then', async () => {
    const ends: Promise<unknown>[] = [];
    await using server = closing(
      await listen((req, res) => {
        ends.push(once(res, 'close'));
        if (req.headers.accept === 'text/event-stream') {
          const connection = openConnection(res, 300, () => undefined);
          connection.send(LARGE);
        } else {
          endWhenStalled(res, 300);
          res.end(LARGE);
        }
      }),
    );
    const heads = ['', '', 'Accept: text/event-stream\r\n'];
    const sockets = await Promise.all(heads.map((head) => askOnly(server.port, head)));
    // Line ends before a request are no request, so Node's own limits do not apply to them.
    const dripping = setInterval(() => {
      for (const socket of sockets) socket.write('\r\n');
    }, 50);
    while (ends.length < sockets.length) await once(server.server, 'request');
    await Promise.all(ends);
    clearInterval(dripping);
    for (const socket of sockets) socket.destroy();
  });
  it('leave a connection open for further requests', async () => {
    await using server = closing(
      await listen((_, res) => {
        endWhenStalled(res, 3_000);
        res.end(LARGE);
      }),
    );
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<unknown>();
    for (let n = 0; n < 3; n++) {
      const asked = get(server.url, { agent });
      const [response] = (await once(asked, 'response')) as [IncomingMessage];
      sockets.add(response.socket);
      let bytes = 0;
      for await (const chunk of response) bytes += (chunk as Buffer).length;
      expect(bytes).to.equal(LARGE.length);
    }
    expect(sockets.size).to.equal(1);
    agent.destroy();
  });
  it('are whole for a client that reads slowly, however long it takes', async () => {
    await using server = closing(
      await listen((_, res) => {
        endWhenStalled(res, 3_000);
        res.end(LARGE);
      }),
    );
    const socket = await askOnly(server.port);
    let read = 0;
    const started = performance.now();
    // A piece at a time, faster than the system lets a buffer run empty before it takes more.
    while (read < LARGE.length && !socket.destroyed) {
      const chunk = socket.read() as Buffer | null;
      if (chunk) read += chunk.length;
      await new Promise((resolve) => setTimeout(resolve, chunk && performance.now() - started < 4_000 ? 20 : 0));
    }
    expect(read).to.be.at.least(LARGE.length);
    expect(performance.now() - started, 'it took longer than the limit').to.be.greaterThan(3_500);
    socket.destroy();
  });
  it('do not end a response that takes long to compute', async () => {
    await using server = closing(
      await listen((_, res) => {
        endWhenStalled(res, 100);
        setTimeout(() => res.end('done'), 500);
      }),
    );
    expect(await (await fetch(server.url)).text()).to.equal('done');
  });
});

describe('responses that are not read by a client of the service', function () {
  this.timeout(60_000);
  it('end after RESPONSE_STALL_MS', async () => {
    await using service = closing(await startTestService({ RESPONSE_STALL_MS: '500' }));
    const { port } = new URL(service.url);
    // Requests in a row on one connection, until the responses fill its buffers.
    const socket = await askOnly(Number(port), `x-api-key: ${KEY}\r\n`);
    const request = `GET /api/docs HTTP/1.1\r\nHost: localhost\r\nx-api-key: ${KEY}\r\n\r\n`;
    socket.write(request.repeat(60));
    // Paused, it would not see that the service has ended the connection.
    const closed = new Promise<void>((resolve) => {
      const look = setInterval(() => {
        socket.write(request, (error) => {
          if (!error) return;
          clearInterval(look);
          resolve();
        });
      }, 100);
    });
    await closed;
  });
});
