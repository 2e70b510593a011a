/** What the EventStoreDB adapter guarantees beyond the port: what it refuses, leaves out, bounds and works around. */
import { expect } from 'chai';
import { type EventStoreLogOptions, openEventStoreLog } from '../../../infra/eventstore/event-log.ts';
import { createLogger } from '../../../infra/logging.ts';
import { ConflictError, LogUnavailableError, UnknownPositionError } from '../../../shared/errors.ts';
import type { EventLog } from '../../../shared/ports/event-log.ts';
import {
  type EventStoreStandIn,
  type StandInOptions,
  startEventStoreStandIn,
} from '../../support/eventstore-stand-in.ts';
import { until } from '../../support/until.ts';
import {
  errorOf,
  eventsOf,
  followUntil,
  gather,
  newEvent,
  newEvents,
  newStream,
  sawEvents,
} from '../event-log/conformance/subject.ts';

const silent = createLogger('silent');

describe('event log: EventStoreDB, the adapter', () => {
  let standIn: EventStoreStandIn;
  let log: EventLog;

  const start = async (options: Partial<EventStoreLogOptions> = {}, server: StandInOptions = {}) => {
    standIn = await startEventStoreStandIn(server);
    log = await openEventStoreLog({ url: standIn.url, log: silent, ...options });
  };
  afterEach(async () => {
    await log.close();
    await standIn.stop();
  });

  /** Writes without the adapter, as another application would. */
  const foreign = (stream: string, contentType: string, data: string, type = 'Foreign', meta = '') =>
    standIn.memory.append(
      stream,
      [{ id: crypto.randomUUID(), type, contentType, data: Buffer.from(data), meta: Buffer.from(meta) }],
      'any',
    );

  describe('rejects before the call', () => {
    it('what is not JSON, and names its place', async () => {
      await start();
      const data = { list: [{ ok: 1 }, { at: new Date() }] };
      expect(await errorOf(log.append(newStream(), [newEvent(0, { type: 'Sent', data })], 'any'))).to.have.property(
        'message',
        'Sent.data.list[1].at is a Date, not a plain object',
      );
    });

    it('a malformed connection string, without repeating its password', async () => {
      await start();
      const error = await errorOf(openEventStoreLog({ url: 'esdb://admin:secret@host:port?tls=maybe', log: silent }));
      expect(JSON.stringify([String(error), error, (error as Error).stack])).to.not.include('secret');
    });
  });

  it('events are written as they were at the call, even if the object changes later', async () => {
    await start();
    const stream = newStream();
    const data = { value: 'before' };
    const appending = log.append(stream, [newEvent(0, { data })], 'none');
    data.value = 'after';
    await appending;
    expect((await gather(log.readStream(stream)))[0]?.data).to.deep.equal({ value: 'before' });
  });

  it('accepts the connection strings of KurrentDB', async () => {
    await start();
    for (const scheme of ['kurrentdb', 'kurrent']) {
      const other = await openEventStoreLog({ url: standIn.url.replace('esdb', scheme), log: silent });
      expect((await other.append(newStream(), [newEvent()], 'none')).revision).to.equal(0);
      await other.close();
    }
  });

  it('system events and events whose data or metadata is not a JSON object are always omitted', async () => {
    await start();
    const stream = newStream();
    foreign(stream, 'application/octet-stream', 'bytes');
    foreign(stream, 'application/json', '[1,2]');
    foreign(stream, 'application/json', '{broken');
    foreign(stream, 'application/json', '{}', 'Foreign', 'no json');
    await log.append(stream, [newEvent(1)], 'any');
    foreign(stream, 'application/json', '{"n":2}');
    foreign('$projections', 'application/json', '{}');
    foreign('$projections', 'application/json', '{}', '$>');
    const numbers = (events: readonly { data: Readonly<Record<string, unknown>> }[]) =>
      events.map(({ data }) => data.n);
    expect(numbers(await gather(log.readStream(stream)))).to.deep.equal([1, 2]);
    expect(numbers(await gather(log.readStream(stream, { limit: 1 })))).to.deep.equal([1]);
    expect(numbers(await gather(log.readAll({ direction: 'backwards', limit: 1 })))).to.deep.equal([2]);
    expect(numbers(eventsOf(await followUntil(log, 0, sawEvents(2, stream))))).to.deep.equal([1, 2]);
  });

  it('deployments with prefixes can share a server, and each has its own log', async () => {
    await start({ prefix: 'acme.' });
    const globex = await openEventStoreLog({ url: standIn.url, prefix: 'globex.', log: silent });
    const following = followUntil(log, 0, sawEvents(2, 'agent-1-7'));
    const [first, second] = [newEvent(1), newEvent(2)];
    await log.append('agent-1-7', [first], 'none');
    await globex.append('agent-1-7', newEvents(1_000, 100), 'none');
    expect(await gather(log.readAll({ direction: 'backwards', limit: 1 }))).to.have.nested.property('[0].id', first.id);
    const { position } = await log.append('agent-1-7', [second], 0);
    await globex.append('agent-1-7', newEvents(40), 999);
    const mine = { stream: 'agent-1-7', id: first.id, revision: 0 };
    expect((await gather(log.readAll()))[0]).to.include(mine);
    expect((await gather(log.readStream('agent-1-7')))[0]).to.include(mine);
    expect(eventsOf(await following).map(({ id }) => id)).to.deep.equal([first.id, second.id]);
    expect(await log.head()).to.equal(position);
    expect(await log.append('agent-1-7', [first], 'none')).to.have.property('revision', 0);
    expect(await errorOf(log.append('agent-1-7', [newEvent()], 'none'))).to.be.instanceOf(ConflictError);
    expect(await gather(globex.readAll())).to.have.length(1_040);
    const names = [...standIn.memory.streams.keys()].filter((name) => !name.startsWith('$'));
    expect(names).to.deep.equal(['acme.agent-1-7', 'globex.agent-1-7']);
    await globex.close();
  });

  it('a follower’s position moves past events of other deployments', async () => {
    await start({ prefix: 'acme.' });
    const { position } = await log.append('one', [newEvent()], 'none');
    for (let n = 0; n < 1_000; n++) foreign('theirs', 'application/json', '{}');
    const steps = await followUntil(log, position, (all) => (all.at(-1)?.position ?? 0) > position);
    expect(eventsOf(steps)).to.deep.equal([]);
  });

  it('the head is found before thousands of system events, and is BEGINNING if there are no others', async () => {
    await start();
    standIn.memory.writeSystemEvents(2_000);
    expect(await log.head()).to.equal(0);
    const { position } = await log.append(newStream(), [newEvent()], 'none');
    standIn.memory.writeSystemEvents(2_000);
    expect(await log.head()).to.equal(position);
  });

  it('a follower’s position moves past runs of system events', async () => {
    await start();
    const { position } = await log.append(newStream(), [newEvent()], 'none');
    standIn.memory.writeSystemEvents(1_000);
    const steps = await followUntil(log, position, (all) => all.at(-1)?.caughtUp === true);
    expect(eventsOf(steps)).to.deep.equal([]);
    expect(steps.at(-1)?.position).to.be.greaterThan(position);
    // A resumption from there works and misses nothing.
    const stream = newStream();
    const following = followUntil(log, steps.at(-1)?.position ?? 0, sawEvents(1, stream));
    await log.append(stream, [newEvent()], 'none');
    expect(eventsOf(await following)).to.have.length(1);
  });

  it('a checkpoint never overtakes the events before it', async () => {
    await start();
    const stream = newStream();
    for (let n = 0; n < 1_000; n += 20) {
      await log.append(stream, newEvents(20, n), 'any');
      standIn.memory.writeSystemEvents(150);
    }
    const events = await gather(log.readStream(stream));
    let seen = 0;
    await followUntil(
      log,
      0,
      (steps) => {
        const step = steps.at(-1);
        seen += step?.events.length ?? 0;
        const covered = events.filter((event) => event.position <= (step?.position ?? 0));
        expect(seen).to.equal(covered.length);
        return seen === 1_000;
      },
      async () => undefined,
    );
  });

  it('the head is compared if the server never announces that a follower has caught up', async () => {
    await start({}, { saysCaughtUp: false });
    const stream = newStream();
    await log.append(stream, newEvents(10), 'none');
    const steps = await followUntil(log, 0, (all) => all.at(-1)?.caughtUp === true);
    expect(eventsOf(steps)).to.have.length(10);
  });

  it('a slow follower holds no more events than its buffer, and reads the rest from the log later', async () => {
    await start({ followBuffer: 100 });
    const stream = newStream();
    for (let n = 0; n < 2_000; n += 500) await log.append(stream, newEvents(500, n), 'any');
    const steps = await followUntil(log, 0, sawEvents(2_000, stream));
    expect(Math.max(...steps.map(({ events }) => events.length))).to.be.at.most(100);
    expect(eventsOf(steps).map(({ data }) => data.n)).to.deep.equal(Array.from({ length: 2_000 }, (_, n) => n));
  });

  it('a slow follower holds no more bytes than its buffer, and reads the rest from the log later', async () => {
    await start({ followBufferBytes: 1_000_000 });
    const stream = newStream();
    const filler = 'x'.repeat(90_000);
    for (let n = 0; n < 100; n += 10) {
      const events = newEvents(10, n).map((event) => ({ ...event, data: { ...event.data, filler } }));
      await log.append(stream, events, 'any');
    }
    let held = 0;
    const steps = await followUntil(log, 0, sawEvents(100, stream), async () => {
      // A slow consumer: the subscription is ended before everything has arrived.
      if (held++ < 2) await until('the subscription ended', () => standIn.subscriptions() === 0);
    });
    expect(Math.max(...steps.map(({ events }) => events.length))).to.be.at.most(12);
    expect(eventsOf(steps).map(({ data }) => data.n)).to.deep.equal(Array.from({ length: 100 }, (_, n) => n));
  });

  it('a follower ends with an error if its server comes back without events that it has read', async () => {
    await start();
    const stream = newStream();
    await log.append(stream, newEvents(10), 'none');
    let restored = false;
    const never = () => false;
    const following = followUntil(log, 0, never, async (steps) => {
      if (restored || !steps.at(-1)?.caughtUp) return;
      restored = true;
      // As if from a backup, at the same address.
      await standIn.stop();
      standIn = await startEventStoreStandIn({ port: standIn.port });
    });
    expect(await errorOf(following)).to.be.instanceOf(UnknownPositionError);
  });

  it('a subscription that goes silent without an error is detected and resumed', async () => {
    await start({ followCheckMs: 100 });
    const stream = newStream();
    let sent = false;
    const steps = await followUntil(log, 0, sawEvents(3, stream), async (all) => {
      if (sent || !all.at(-1)?.caughtUp) return;
      sent = true;
      standIn.muteSubscriptions();
      await log.append(stream, newEvents(3), 'none');
    });
    expect(eventsOf(steps).map(({ data }) => data.n)).to.deep.equal([0, 1, 2]);
  });

  it('a follower that has ended leaves no subscription on the server', async () => {
    await start();
    const before = standIn.subscriptions();
    for (let round = 0; round < 5; round++) await followUntil(log, 0, (all) => all.at(-1)?.caughtUp === true);
    await until('all are ended', () => standIn.subscriptions() === before);
  });

  it('appends above the limit wait in call order; when the queue is full, they fail at once', async () => {
    await start({ maxInFlight: 2, maxWaiting: 5 });
    await log.append(newStream(), [newEvent()], 'none');
    standIn.delayAppends(100);
    const stream = newStream();
    let stored = 0;
    const appends = newEvents(7).map(async (event) => {
      const one = await log.append(stream, [event], 'any');
      stored++;
      return one;
    });
    expect(await errorOf(log.append(stream, [newEvent()], 'any'))).to.be.instanceOf(LogUnavailableError);
    expect(stored, 'appends that it waited for').to.equal(0);
    const answers = await Promise.all(appends);
    expect(answers.map(({ revision }) => revision)).to.deep.equal([0, 1, 2, 3, 4, 5, 6]);
  });

  it('appends above the limit in bytes wait in call order; above twice the limit, they fail at once', async () => {
    await start({ maxAppendBytes: 1_000_000 });
    await log.append(newStream(), [newEvent()], 'none');
    standIn.delayAppends(200);
    const stream = newStream();
    const large = () => newEvent(0, { data: { filler: 'x'.repeat(300_000) } });
    const appends = Array.from({ length: 6 }, () => log.append(stream, [large()], 'any'));
    expect(await errorOf(log.append(stream, [large()], 'any'))).to.be.instanceOf(LogUnavailableError);
    await until('the first are applied', () => standIn.memory.streams.get(stream)?.length === 3);
    // A small one does not overtake those that wait.
    const last = log.append(stream, [newEvent()], 'any');
    expect((await Promise.all(appends)).map(({ revision }) => revision)).to.deep.equal([0, 1, 2, 3, 4, 5]);
    expect((await last).revision).to.equal(6);
    // An append that is larger than the limit is sent alone.
    await log.close();
    log = await openEventStoreLog({ url: standIn.url, log: silent, maxAppendBytes: 100_000 });
    expect((await log.append(newStream(), [large()], 'none')).revision).to.equal(0);
  });

  it('a deleted stream has its own error, for appends and reads', async () => {
    await start();
    const stream = newStream();
    await log.append(stream, [newEvent()], 'none');
    standIn.memory.tombstone(stream);
    for (const error of [
      await errorOf(log.append(stream, [newEvent()], 'any')),
      await errorOf(gather(log.readStream(stream))),
    ]) {
      expect(error).to.be.instanceOf(Error);
      expect(error).to.not.be.instanceOf(LogUnavailableError);
      expect(error).to.not.be.instanceOf(ConflictError);
    }
  });

  it('a read continues after its last event if the server rejects requests for a while', async () => {
    await start();
    const stream = newStream();
    await log.append(stream, newEvents(1_000), 'none');
    await log.append(stream, newEvents(600, 1_000), 'any');
    const read: unknown[] = [];
    // Unavailable, cancelled by the server, deadline exceeded, unknown.
    const codes = [14, 1, 4, 2];
    for await (const batch of log.readStream(stream)) {
      read.push(...batch.map(({ data }) => data.n));
      standIn.refuseReads(...codes.splice(0, 1));
    }
    expect(read).to.deep.equal(Array.from({ length: 1_600 }, (_, n) => n));
  });

  it('an append expecting any without a response in time is recognized after a server restart', async () => {
    await start({ appendTimeoutMs: 2_000 });
    const stream = newStream();
    const event = newEvent();
    await log.append(stream, [newEvent()], 'none');
    standIn.delayAppends(60_000);
    const appending = errorOf(log.append(stream, [event], 'any'));
    await until('the append is applied', () => standIn.memory.streams.get(stream)?.length === 2);
    await standIn.halt();
    expect(await appending).to.be.instanceOf(LogUnavailableError);
    standIn.delayAppends(0);
    await standIn.start();
    expect((await log.append(stream, [event], 'any')).revision).to.equal(1);
    expect(await gather(log.readStream(stream))).to.have.length(2);
  });
});
