/** What clients of the stream can make the process hold, and how many of them there may be. */
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { createBudget } from '../../api/stream/budget.ts';
import { adapterReported } from '../../shared/events/agents/adapters.ts';
import { openStream } from '../support/stream.ts';
import { deafClient, type HubServer, logged, startHub } from '../support/stream-hub.ts';
import { until } from '../support/until.ts';

const TEXT = 'x'.repeat(900_000);
/** One frame of 0.9 MB. */
const large = (position: number) =>
  logged(
    position,
    adapterReported.draft({
      framework: 'crewai',
      action: 'report',
      agent_id: 'a',
      payload: { taskId: position, output: TEXT },
    }),
  );
const MB = 1_000_000;

describe('stream limits', () => {
  let base: HubServer;
  let sockets: Socket[] = [];
  const deaf = (count: number, headers: Record<string, string> = {}) => {
    for (let n = 0; n < count; n++) sockets.push(deafClient(base.port, { 'x-user': `${n % 5}`, ...headers }));
  };
  /** Bytes that Node holds in the answers in progress; those just cut off are let go in the same turn. */
  const inResponses = () => [...base.responses].reduce((sum, res) => sum + (res.destroyed ? 0 : res.writableLength), 0);

  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    sockets = [];
    await base.close();
  });

  it('25 clients that request everything but read nothing share one limit, are closed and free memory', async () => {
    base = await startHub({ limits: { catchUpBytes: 5 * MB, stallMs: 400 } });
    base.log.events = Array.from({ length: 60 }, (_, n) => large(n + 1));
    base.log.followed = 60;
    let most = 0;
    let unaccounted = 0;
    const look = () => {
      // Pages in a reader's hands are counted by the log, what waits in answers by Node: neither is the hub's own word.
      most = Math.max(most, base.log.out.now + inResponses());
      unaccounted = Math.max(unaccounted, inResponses() - base.hub.held);
    };
    const timer = setInterval(look, 1);
    deaf(25, { 'last-event-id': '0' });
    try {
      await until('much waits', () => most > 2 * MB);
      await until('all are cut off', () => base.asked() === 25 && base.hub.clients === 0, 25_000);
    } finally {
      clearInterval(timer);
    }
    // What was set aside for a read may be exceeded by the event that it brings, once for each of four readers.
    expect(most).to.be.at.most(5 * MB + 4 * MB);
    // Node adds a few bytes to each piece that it sends.
    expect(unaccounted).to.be.lessThan(1_000);
    expect(base.log.out.mostReaders).to.be.at.most(4);
    expect([base.hub.held, inResponses(), base.log.out.now]).to.deep.equal([0, 0, 0]);
  });

  it('live clients that stop reading share one limit and do not slow down others', async () => {
    base = await startHub({ limits: { liveBytes: 5 * MB, catchUpBytes: 5 * MB, stallMs: 60_000 } });
    deaf(25);
    const healthy = await openStream(base.url, { 'x-user': '99' });
    await until('all are served', () => base.hub.clients === 26);
    for (let position = 1; position <= 40; position++) {
      base.log.events.push(large(position));
      base.log.follow(position);
      await healthy.until(() => healthy.frames.at(-1)?.id === `${position}`);
      expect(base.hub.held).to.be.at.most(5 * MB + 5 * MB + 4 * MB);
    }
    expect(healthy.frames.map((frame) => frame.id)).to.deep.equal(base.log.events.map(({ position }) => `${position}`));
    healthy.close();
    for (const socket of sockets) socket.destroy();
    await until('all are gone', () => base.hub.clients === 0);
    await until('nothing is held for them', () => base.hub.held === 0);
  });

  it('a client that stops reading is disconnected, but one that reads slowly is not', async function () {
    this.timeout(60_000);
    base = await startHub({ limits: { stallMs: 500 } });
    base.log.events = Array.from({ length: 30 }, (_, n) => large(n + 1));
    base.log.followed = 30;
    deaf(1, { 'last-event-id': '0' });
    let received = 0;
    const slow = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
      const asked = request(base.url, { headers: { 'last-event-id': '0', 'x-user': '7' } }, resolve);
      asked.on('error', reject);
      asked.end();
    });
    slow.on('data', (chunk: Buffer) => {
      received += chunk.length;
      slow.pause();
      setTimeout(() => slow.resume(), 2);
    });
    await until('the deaf one is cut off', () => base.hub.clients === 1, 30_000);
    await until('the slow one has everything', () => received > 30 * TEXT.length, 50_000);
    expect(base.hub.clients).to.equal(1);
    slow.destroy();
  });

  it('streams are limited per caller (429) and per process (503), until one is closed', async () => {
    base = await startHub({ limits: { perCaller: 2, perAddress: 3, clients: 6 } });
    const open = (headers: Record<string, string>) => openStream(base.url, headers);
    const refused = async (headers: Record<string, string>) => {
      const answer = await fetch(base.url, { headers });
      return answer.status;
    };
    const mine = [await open({ 'x-user': '1' }), await open({ 'x-user': '1', 'x-ip': '192.0.2.77' })];
    expect(await refused({ 'x-user': '1' })).to.equal(429);
    const other = await open({ 'x-user': '2' });
    // The deployment's key is shared: there the address counts, of IPv6 the network.
    const key = { 'x-kind': 'global-key', 'x-user': '0' };
    const shared = await Promise.all(['2', '3', '4'].map((n) => open({ ...key, 'x-ip': `2001:db8:1:1::${n}` })));
    expect(await refused({ ...key, 'x-ip': '2001:db8:1:1:ffff::9' })).to.equal(503);
    mine[0]?.close();
    await until('one is gone', () => base.hub.clients === 5);
    expect(await refused({ ...key, 'x-ip': '2001:db8:1:1:ffff::9' })).to.equal(429);
    const again = await open({ 'x-user': '1' });
    for (const stream of [...mine, other, ...shared, again]) stream.close();
    await until('all are gone', () => base.hub.clients === 0);
  });

  it('a rejected id or a client that leaves before it is served does not count', async () => {
    base = await startHub({ limits: { perCaller: 1 } });
    expect((await fetch(base.url, { headers: { 'last-event-id': '77' } })).status).to.equal(400);
    base.log.events = [large(1)];
    let release = () => {};
    let asked = false;
    base.log.reading = () => {
      asked = true;
      return new Promise((resolve) => {
        release = resolve;
      });
    };
    const leaving = deafClient(base.port, { 'x-user': '1', 'last-event-id': '1' });
    await until('it is looked up', () => asked);
    leaving.destroy();
    await until('it has left', () => base.responses.size === 0);
    release();
    base.log.reading = async () => {};
    const stream = await openStream(base.url, {});
    stream.close();
  });

  it('pipelined streams on one connection end with the connection', async () => {
    base = await startHub();
    const socket = deafClient(base.port);
    sockets.push(socket);
    socket.write('GET /api/events HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(3));
    await until('they are served', () => base.hub.clients === 4);
    socket.destroy();
    // Not only when the next comment line cannot be sent.
    await until('all are gone', () => base.hub.clients === 0, 5_000);
    expect(base.hub.held).to.equal(0);
  });
});

describe('stream budget', () => {
  const never = new AbortController().signal;

  it('reads wait for room in order of arrival, and cancelled reads are skipped', async () => {
    const budget = createBudget({ bytes: 1_000, pageBytes: 300, readers: 2 });
    const admitted: string[] = [];
    const enter = (name: string, signal = never) =>
      budget.enter(signal).then((leave) => {
        if (leave) admitted.push(name);
        return leave;
      });
    const leaving = new AbortController();
    const [a, b] = await Promise.all([enter('a'), enter('b')]);
    const waiting = [enter('c'), enter('d', leaving.signal), enter('e')];
    await Promise.resolve();
    expect([budget.held, admitted]).to.deep.equal([600, ['a', 'b']]);
    // What was read waits in connections now: one more read fits in, not two.
    budget.hold(700);
    a?.();
    b?.();
    leaving.abort();
    expect(await waiting[1]).to.equal(undefined);
    const c = await waiting[0];
    expect([budget.held, admitted]).to.deep.equal([1_000, ['a', 'b', 'c']]);
    c?.();
    const e = await waiting[2];
    e?.();
    budget.free(700);
    expect([budget.held, admitted]).to.deep.equal([0, ['a', 'b', 'c', 'e']]);
  });

  it('no read starts until the bytes buffered in connections have been sent', async () => {
    const budget = createBudget({ bytes: 1_000, pageBytes: 300, readers: 2 });
    budget.hold(701);
    let inside = false;
    const entering = budget.enter(never).then(() => {
      inside = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(inside).to.equal(false);
    budget.free(1);
    await entering;
    expect(budget.held).to.equal(1_000);
  });
});
