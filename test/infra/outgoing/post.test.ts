/** Requests to URLs that users give: where they go, and how much of an answer is waited for. */
import type { LookupAddress, lookup } from 'node:dns';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { expect } from 'chai';
import { createGateways } from '../../../infra/outgoing/admin/gateways.ts';
import { createOutgoing, KEPT_ANSWER } from '../../../infra/outgoing/post.ts';
import { createAddressRule } from '../../../shared/addresses.ts';
import { GatewayError } from '../../../shared/ports/admin/gateways.ts';
import { closing, fixture } from '../../support/fixture.ts';
import { startFakeGateway } from '../../support/gateway.ts';
import { listen } from '../../support/listen.ts';
import { startReceiver } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';
import { errorOf } from '../event-log/conformance/subject.ts';

/** A name server that gives these answers, one after the other, the last one for good. */
function names(...answers: readonly (readonly string[])[]) {
  const asked: string[] = [];
  let at = 0;
  const fake = (host: string, _options: object, callback: (error: Error | null, found: LookupAddress[]) => void) => {
    asked.push(host);
    const found = answers[Math.min(at++, answers.length - 1)] ?? [];
    process.nextTick(
      callback,
      null,
      found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  return { lookup: fake as unknown as typeof lookup, asked };
}

const LOCAL = createAddressRule(['127.0.0.0/8']);
const PUBLIC_ONLY = createAddressRule([]);
const request = (url: string) => ({ url, headers: { 'x-test': '1' }, body: '{"a":"ä"}' });

describe('requests to user-supplied URLs', () => {
  const receiver = fixture(startReceiver);

  const sent = () => receiver.requests.length;

  it('look a name up when connecting, and connect only to an allowed address', async () => {
    const url = `http://hook.example.org:${receiver.port}/hook`;
    const allowed = names(['127.0.0.1']);
    const result = await createOutgoing({ rule: LOCAL, timeoutMs: 2_000, lookup: allowed.lookup }).post(request(url));
    expect(result).to.include({ status: 200, body: 'thanks', error: null });
    expect(allowed.asked).to.deep.equal(['hook.example.org']);
    const { headers, text, method } = receiver.requests.at(-1) ?? expect.fail('nothing was sent');
    expect({ text, method, host: headers.host, test: headers['x-test'] }).to.deep.equal({
      text: '{"a":"ä"}',
      method: 'POST',
      host: `hook.example.org:${receiver.port}`,
      test: '1',
    });
    const before = sent();
    for (const addresses of [
      ['127.0.0.1'],
      ['::ffff:127.0.0.1'],
      ['10.0.0.1'],
      ['1.1.1.1', '127.0.0.1'],
      ['::1'],
      [],
    ]) {
      const { lookup } = names(addresses);
      const refused = await createOutgoing({ rule: PUBLIC_ONLY, timeoutMs: 2_000, lookup }).post(request(url));
      expect(refused, addresses.join()).to.deep.include({
        status: null,
        error: 'hook.example.org does not resolve to a public address.',
      });
    }
    expect(sent()).to.equal(before);
  });

  it('fail if a name changes its address after the first look-up', async () => {
    const rebinding = names(['127.0.0.2'], ['127.0.0.1']);
    const rule = createAddressRule(['127.0.0.2']);
    const url = `http://rebind.example.org:${receiver.port}/hook`;
    const before = sent();
    const outgoing = createOutgoing({ rule, timeoutMs: 2_000, lookup: rebinding.lookup });
    // No server listens there: the test is that the address of the second response gets no connection.
    expect((await outgoing.post(request(url))).status).to.equal(null);
    expect((await outgoing.post(request(url))).error).to.include('does not resolve to a public address');
    expect(rebinding.asked, 'one look-up for each connection').to.have.length(2);
    expect(sent()).to.equal(before);
  });

  it('check every address of a name, in any order', async () => {
    const before = sent();
    for (const addresses of [
      ['127.0.0.1', '10.0.0.1'],
      ['127.0.0.1', '127.0.0.2', '::1'],
      ['127.0.0.1', '168.63.129.16'],
    ]) {
      const { lookup } = names(addresses);
      const outgoing = createOutgoing({ rule: LOCAL, timeoutMs: 2_000, lookup });
      const { error } = await outgoing.post(request(`http://hook.example.org:${receiver.port}/hook`));
      expect(error, addresses.join()).to.equal('hook.example.org does not resolve to a public address.');
    }
    expect(sent()).to.equal(before);
  });

  it('never connect to a metadata service, whatever is allowed', async () => {
    const { lookup, asked } = names(['127.0.0.1']);
    const outgoing = createOutgoing({ rule: LOCAL, timeoutMs: 2_000, lookup });
    const before = sent();
    for (const host of ['metadata.google.internal', 'metadata.internal.', 'instance-data', '168.63.129.16']) {
      const { error } = await outgoing.post(request(`http://${host}:${receiver.port}/latest`));
      expect(error, host).to.match(/^The URL must not point to /);
    }
    const leading = createOutgoing({
      rule: createAddressRule(['0.0.0.0/0']),
      timeoutMs: 2_000,
      lookup: names(['168.63.129.16']).lookup,
    });
    const { error } = await leading.post(request('http://hook.example.org/'));
    expect(error).to.equal('hook.example.org does not resolve to a public address.');
    expect(asked).to.deep.equal([]);
    expect(sent()).to.equal(before);
  });

  it('check addresses without looking them up', async () => {
    const before = sent();
    for (const host of ['127.0.0.1', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1', 'localhost']) {
      const outgoing = createOutgoing({ rule: PUBLIC_ONLY, timeoutMs: 2_000 });
      const result = await outgoing.post(request(`http://${host}:${receiver.port}/hook`));
      expect(result.status, host).to.equal(null);
      expect(result.error, host).to.match(/must not point to/);
    }
    expect(sent()).to.equal(before);
  });

  it('are cut off before a byte is sent if they bypass the look-up', async () => {
    const received: string[] = [];
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (data) => received.push(data.toString()));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    // A rule that lets the address through when it is configured, and not when it is connected to.
    let asked = 0;
    const rule = { allowed: 'a public address', fault: () => undefined, allows: () => asked++ < 0 };
    const { port } = server.address() as AddressInfo;
    const result = await createOutgoing({ rule, timeoutMs: 2_000 }).post(request(`http://127.0.0.1:${port}/`));
    expect(result.error).to.equal('127.0.0.1 does not resolve to a public address.');
    expect(asked).to.equal(1);
    expect(received.join('')).not.to.include('"a"');
    await new Promise((resolve) => server.close(resolve));
  });

  it('read an endless response up to a limit, and a slow one until the time-out', async () => {
    const server = await listen((req, res) => {
      res.writeHead(200);
      if (req.url === '/endless') {
        const more = () => {
          while (!res.destroyed && res.write('y'.repeat(10_000)));
          res.once('drain', more);
        };
        more();
      } else res.write('slowly');
    });
    const outgoing = createOutgoing({ rule: LOCAL, timeoutMs: 500 });
    const endless = await outgoing.post(request(`${server.url}/endless`));
    expect(endless).to.include({ status: 200, body: `${'y'.repeat(KEPT_ANSWER)}...`, error: null });
    // The status has come, so the delivery has arrived.
    const slow = await outgoing.post(request(`${server.url}/slow`));
    expect(slow).to.include({ status: 200, body: 'slowly', error: null });
    expect(slow.durationMs).to.be.within(400, 20_000);
    await server.close();
  });

  it('end if the receiver switches to another protocol', async () => {
    await using server = closing(await listen(() => undefined));
    server.server.on('connection', (socket) =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
    );
    const outgoing = createOutgoing({ rule: LOCAL, timeoutMs: 2_000 });
    const { status, error } = await outgoing.post(request(server.url));
    expect({ status, error }).to.deep.equal({
      status: null,
      error: 'The receiver could not be reached (no connection).',
    });
  });

  it('replace characters that cannot be stored, and cut none in half', async () => {
    const outgoing = createOutgoing({ rule: LOCAL, timeoutMs: 2_000 });
    receiver.react(() => ({ status: 200, body: `\0${'x'.repeat(KEPT_ANSWER - 2)}😀 and more` }));
    const { body } = await outgoing.post(request(receiver.url));
    expect(body).to.equal(`\uFFFD${'x'.repeat(KEPT_ANSWER - 2)}...`);
  });

  it('do not count as a failure of the receiver if the process stops', async () => {
    receiver.react(() => 'hang');
    const stop = new AbortController();
    const outgoing = createOutgoing({ rule: LOCAL, timeoutMs: 10_000 });
    const post = outgoing.post(request(receiver.url), stop.signal);
    const reason = new Error('stopping');
    setImmediate(() => stop.abort(reason));
    expect(await post.catch((error: unknown) => error)).to.equal(reason);
  });
});

describe('requests to gateways', () => {
  it('treat a response that is nested too deep as not JSON', async () => {
    await using gateway = closing(await startFakeGateway());
    const { call } = createGateways();
    const nested = async (levels: number) => {
      let value: unknown = 1;
      for (let level = 0; level < levels; level++) value = [value];
      gateway.sessions = value as unknown[];
      return call({ url: gateway.url, token: null }, { method: 'GET', path: '/api/sessions' });
    };
    expect((await nested(90)).body).to.have.property('sessions');
    expect(await nested(101)).to.deep.equal({ status: 200, body: undefined });
  });

  it('reach every port, including those that fetch blocks', async () => {
    const { probe, call } = createGateways({ timeoutMs: 5_000 });
    // fetch answers "bad port" without a connection; here no server listens.
    for (const port of [1, 6_000, 10_080]) {
      const url = `http://127.0.0.1:${port}`;
      expect((await probe(url)).error, url).to.equal('The gateway could not be reached (ECONNREFUSED).');
      const error = await call({ url, token: null }, { method: 'GET', path: '/' }).catch((reason: unknown) => reason);
      expect(String(error), url).to.include('ECONNREFUSED');
    }
  });

  it('close the connection if a response is too long', async () => {
    let ended = false;
    const server = await listen((_req, res) => {
      res.on('close', () => {
        ended = true;
      });
      const more = () => {
        while (!res.destroyed && res.write('y'.repeat(65_536)));
        res.once('drain', more);
      };
      more();
    });
    const health = await createGateways().probe(server.url);
    expect(health.error).to.equal('The gateway sent more than 1048576 bytes.');
    await until('the connection has ended', () => ended);
    await server.close();
  });

  it('may have a shorter time-out than others', async () => {
    await using gateway = closing(await startFakeGateway());
    gateway.mode = 'silent';
    const { call } = createGateways({ timeoutMs: 600_000 });
    const asked = call({ url: gateway.url, token: null }, { method: 'GET', path: '/api/sessions', timeoutMs: 50 });
    expect(await errorOf(asked))
      .to.be.instanceOf(GatewayError)
      .that.includes({ late: true });
  });
});
