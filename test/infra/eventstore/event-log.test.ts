/**
 * The EventStoreDB adapter: the conformance suite against the stand-in server, and against a real one when
 * TEST_EVENTSTORE_URL names it; then what goes wrong between the adapter and its server.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type EventStoreLogOptions, openEventStoreLog } from '../../../infra/eventstore/event-log.ts';
import { createLogger } from '../../../infra/logging.ts';
import { LogUnavailableError } from '../../../shared/errors.ts';
import type { EventLog, Expectation, NewEvent } from '../../../shared/ports/event-log.ts';
import {
  type EventStoreStandIn,
  type StandInOptions,
  startEventStoreStandIn,
} from '../../support/eventstore-stand-in.ts';
import { describeWith } from '../../support/needs.ts';
import { freshPrefix } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import {
  errorOf,
  eventsOf,
  followUntil,
  gather,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  readAfter,
  sawEvents,
} from '../event-log/conformance/subject.ts';
import { describeEventLog } from '../event-log/conformance.ts';

const silent = createLogger('silent');

/** More than one step holds, and few enough to be overrun quickly. */
const followBuffer = 1_200;

describeEventLog('EventStoreDB, stand-in server', async () => {
  const standIn = await startEventStoreStandIn();
  const open = () => openEventStoreLog({ url: standIn.url, log: silent, followBuffer });
  const log = await open();
  return {
    log,
    followBuffer,
    idsPerStream: true,
    other: open,
    async close() {
      await log.close();
      await standIn.stop();
    },
  };
});

describeEventLog('EventStoreDB, stand-in server shared with others', async () => {
  const standIn = await startEventStoreStandIn();
  const [prefix, without] = ['test_a.', await openEventStoreLog({ url: standIn.url, log: silent })];
  await without.append('theirs', newEvents(700), 'none');
  const open = () => openEventStoreLog({ url: standIn.url, prefix, log: silent, followBuffer });
  const log = await open();
  return {
    log,
    followBuffer,
    idsPerStream: true,
    other: open,
    async close() {
      await log.close();
      await without.close();
      await standIn.stop();
    },
  };
});

describeWith('TEST_EVENTSTORE_URL', 'event log on a real server', () => {
  const realUrl = process.env.TEST_EVENTSTORE_URL ?? '';
  describeEventLog('EventStoreDB', async () => {
    const log = await openEventStoreLog({ url: realUrl, log: silent });
    const other = () => openEventStoreLog({ url: realUrl, log: silent });
    return { log, other, idsPerStream: true, close: () => log.close() };
  });
  describeEventLog('EventStoreDB, shared with others', async () => {
    const prefix = freshPrefix();
    const open = () => openEventStoreLog({ url: realUrl, prefix, log: silent });
    const log = await open();
    return { log, other: open, idsPerStream: true, close: () => log.close() };
  });
});

describe('event log: EventStoreDB failures', () => {
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

  const streamIds = async (stream: string) => idsOf(await gather(log.readStream(stream)));

  /** Appends `count` events to eight streams at once, each until it succeeds, with `fault` called at even steps. */
  const appendThrough = async (count: number, fault: () => void, steps: number) => {
    const streams = Array.from({ length: 8 }, newStream);
    const events = newEvents(count);
    let answered = 0;
    await Promise.all(
      events.map(async (event, n) => {
        await log.append(streams[n % 8] ?? '', [event], 'any');
        if (++answered % Math.ceil(count / steps) === 0) fault();
      }),
    );
    return { streams, events };
  };

  for (const expected of ['any', 'none', 4] satisfies Expectation[]) {
    it(`a response lost with the connection (${expected}): repeated, acknowledged, no duplicates`, async () => {
      await start();
      const stream = newStream();
      if (typeof expected === 'number') await log.append(stream, newEvents(5), 'none');
      const before = (await streamIds(stream)).length;
      const batch = newEvents(3);
      standIn.loseAnswers(1, 'connection');
      expect((await log.append(stream, batch, expected)).revision).to.equal(before + 2);
      expect((await streamIds(stream)).slice(before)).to.deep.equal(idsOf(batch));
    });
  }

  it("a response to 'any' lost in a restart that forgets ids: no duplicates", async () => {
    await start();
    const stream = newStream();
    await log.append(stream, newEvents(700), 'any');
    const batch = newEvents(2);
    standIn.delayAppends(60_000);
    const appending = log.append(stream, batch, 'any');
    await until('the append is applied', () => standIn.memory.streams.get(stream)?.length === 702);
    await standIn.halt();
    standIn.delayAppends(0);
    // Another writer comes first after the restart.
    await standIn.start();
    await log.append(stream, newEvents(1), 'any');
    expect((await appending).revision).to.equal(701);
    expect((await streamIds(stream)).slice(700, 702)).to.deep.equal(idsOf(batch));
    expect(await streamIds(stream)).to.have.length(703);
  });

  it('a single response silently lost: the append is repeated', async () => {
    await start({ appendTimeoutMs: 1_500 });
    const stream = newStream();
    standIn.loseAnswers(1, 'silence');
    const events = newEvents(5);
    await Promise.all(events.map((event) => log.append(stream, [event], 'any')));
    expect(await streamIds(stream)).to.have.members(idsOf(events));
  });

  it('connections drop five times under 200 appends: none lost, no duplicates', async () => {
    await start();
    const { streams, events } = await appendThrough(200, () => standIn.dropConnections(), 5);
    expect(idsOf(await readAfter(log, 0, streams)).sort()).to.deep.equal(idsOf(events).sort());
  });

  it('the server restarts under 200 appends: none lost, no duplicates', async () => {
    await start();
    const restarts: Promise<void>[] = [];
    const restart = () => {
      if (restarts.length < 3) restarts.push(standIn.halt().then(() => standIn.start()));
    };
    const { streams, events } = await appendThrough(200, restart, 4);
    await Promise.all(restarts);
    await until('the server is up', async () => (await log.head()) > 0);
    expect(idsOf(await readAfter(log, 0, streams)).sort()).to.deep.equal(idsOf(events).sort());
  });

  it('consecutive appends with exact revisions stay in order through a dropped connection', async () => {
    await start();
    const stream = newStream();
    await log.append(stream, [newEvent()], 'none');
    const events = newEvents(40);
    standIn.delayAppends(50);
    const appends = events.map((event, n) => log.append(stream, [event], n));
    standIn.dropConnections();
    standIn.delayAppends(0);
    await Promise.all(appends);
    expect((await streamIds(stream)).slice(1)).to.deep.equal(idsOf(events));
  });

  it('a server that hangs with a full send queue and then dies leaves no unhandled rejection', async () => {
    await start({ appendTimeoutMs: 5_000 });
    await log.append(newStream(), [newEvent()], 'any');
    standIn.freeze();
    const filler = 'x'.repeat(20_000);
    const appends = newEvents(300).map((event) => log.append(newStream(), [{ ...event, data: { filler } }], 'any'));
    await until('the hanging connection is there', () => standIn.connections() > 0);
    await standIn.halt();
    await standIn.start();
    // Mocha fails the test for an unhandled rejection.
    expect(await Promise.all(appends)).to.have.length(300);
  });

  it('a server that is not ready: appends, reads and followers wait for it', async () => {
    await start();
    const stream = newStream();
    await log.append(stream, [newEvent(0)], 'none');
    standIn.setReady(false);
    const appending = log.append(stream, [newEvent(1)], 0);
    const reading = gather(log.readStream(stream, { limit: 1 }));
    const following = followUntil(log, 0, sawEvents(2, stream));
    await until('all of them were refused', () => standIn.refusals() >= 5);
    standIn.setReady(true);
    expect((await appending).revision).to.equal(1);
    expect(await reading).to.have.length(1);
    expect(eventsOf(await following)).to.have.length(2);
  });

  it('a server that restarts while it is followed: every event once, in order', async () => {
    await start();
    const stream = newStream();
    const following = followUntil(log, 0, sawEvents(300, stream));
    for (let round = 0; round < 3; round++) {
      await log.append(stream, newEvents(100, round * 100), 'any');
      await standIn.halt();
      await standIn.start();
    }
    const numbers = eventsOf(await following).map(({ data }) => data.n);
    expect(numbers).to.deep.equal(Array.from({ length: 300 }, (_, n) => n));
  });

  it('a follower repeatedly dropped as too slow: every event once', async () => {
    await start({}, { liveQueue: 1 });
    const stream = newStream();
    let appended = 0;
    const steps = await followUntil(log, 0, sawEvents(2_000, stream), async (all) => {
      // A batch while the subscription is live: more than its queue takes.
      if (!all.at(-1)?.caughtUp || appended === 2_000) return;
      await log.append(stream, newEvents(200, appended), 'any');
      appended += 200;
    });
    expect(eventsOf(steps).map(({ data }) => data.n)).to.deep.equal(Array.from({ length: 2_000 }, (_, n) => n));
    expect(standIn.slowDrops()).to.be.greaterThan(3);
  });

  it('connections that drop while the log is read and followed from the beginning', async () => {
    await start();
    const stream = newStream();
    for (let n = 0; n < 3_000; n += 1_000) await log.append(stream, newEvents(1_000, n), 'any');
    const read: unknown[] = [];
    for await (const batch of log.readAll()) {
      read.push(...batch.map(({ data }) => data.n));
      standIn.dropConnections();
    }
    const followed = await followUntil(log, 0, sawEvents(3_000, stream), async (steps) => {
      if (steps.length < 6) standIn.dropConnections();
    });
    const expected = Array.from({ length: 3_000 }, (_, n) => n);
    expect(read).to.deep.equal(expected);
    expect(eventsOf(followed).map(({ data }) => data.n)).to.deep.equal(expected);
  });

  describe('time-outs', () => {
    const TIMEOUT_MS = 900;
    const withinTime = async (promise: Promise<unknown>) => {
      const began = performance.now();
      expect(await errorOf(promise)).to.be.instanceOf(LogUnavailableError);
      expect(performance.now() - began).to.be.lessThan(TIMEOUT_MS + 500);
    };
    const short = { appendTimeoutMs: TIMEOUT_MS, readTimeoutMs: TIMEOUT_MS };

    it('a frozen server: calls throw LogUnavailableError, and repeated appends are written once', async () => {
      await start(short);
      const stream = newStream();
      await log.append(stream, [newEvent()], 'none');
      standIn.freeze();
      const events: [NewEvent, Expectation][] = [
        [newEvent(1), 'any'],
        [newEvent(2), 'any'],
      ];
      await Promise.all([
        ...events.map(([event, expected]) => withinTime(log.append(stream, [event], expected))),
        withinTime(gather(log.readStream(stream))),
        withinTime(gather(log.readAll())),
        withinTime(log.head()),
      ]);
      standIn.thaw();
      for (const [event, expected] of events) await log.append(stream, [event], expected);
      expect((await streamIds(stream)).slice(1)).to.have.members(idsOf(events.map(([event]) => event)));
    });

    it('a server that is gone', async () => {
      await start(short);
      await log.append(newStream(), [newEvent()], 'none');
      await standIn.halt();
      await Promise.all([withinTime(log.append(newStream(), [newEvent()], 'any')), withinTime(log.head())]);
    });

    it('a cluster without a reachable node', async () => {
      await start();
      const nowhere = await openEventStoreLog({ url: 'esdb+discover://127.0.0.1:1?tls=false', log: silent, ...short });
      await Promise.all([
        withinTime(nowhere.append(newStream(), [newEvent()], 'any')),
        withinTime(nowhere.head()),
        withinTime(gather(nowhere.readStream(newStream()))),
      ]);
      await nowhere.close();
    });

    it('a process stopped by SIGSTOP', async () => {
      await start();
      const main = fileURLToPath(new URL('../../support/eventstore-stand-in-main.js', import.meta.url));
      const child = spawn(process.execPath, [main], { stdio: ['ignore', 'pipe', 'inherit'] });
      const [url] = (await once(child.stdout, 'data')) as [Buffer];
      const far = await openEventStoreLog({ url: url.toString().trim(), log: silent, ...short });
      const stream = newStream();
      await far.append(stream, [newEvent()], 'none');
      child.kill('SIGSTOP');
      const event = newEvent();
      await withinTime(far.append(stream, [event], 0));
      child.kill('SIGCONT');
      expect((await far.append(stream, [event], 0)).revision).to.equal(1);
      await far.close();
      child.kill('SIGTERM');
      await once(child, 'exit');
    });
  });
});
