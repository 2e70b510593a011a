/**
 * The one reader of the log: which followers are called, which read the log themselves, that none holds up another; and
 * the memory of own events.
 */
import { expect } from 'chai';
import { z } from 'zod';
import type { Database } from '../../../infra/database/database.ts';
import { openEventStoreLog } from '../../../infra/eventstore/event-log.ts';
import { Follower, type Subject } from '../../../infra/following/follower.ts';
import { Following } from '../../../infra/following/following.ts';
import type { Gathering } from '../../../infra/following/gathering.ts';
import type { IdleCheckpoints } from '../../../infra/following/idle.ts';
import { followLive } from '../../../infra/following/live.ts';
import { createLogger } from '../../../infra/logging.ts';
import { createEventStore } from '../../../shared/event-store.ts';
import { defineEvent, type EventDefinition } from '../../../shared/events/define.ts';
import {
  BEGINNING,
  type EventLog,
  type Followed,
  type LoggedEvent,
  type Position,
} from '../../../shared/ports/event-log.ts';
import { startEventStoreStandIn } from '../../support/eventstore-stand-in.ts';
import { closing } from '../../support/fixture.ts';
import { gate } from '../../support/memory-world.ts';
import { until } from '../../support/until.ts';
import { testOrigin } from '../../support/world.ts';

const logger = createLogger('silent');

/** A log in memory that counts how it is read. */
function memoryLog() {
  const events: LoggedEvent[] = [];
  const followers = new Set<() => void>();
  const counts = { reads: 0, follows: 0 };
  const wakeAll = () => {
    for (const wake of followers) wake();
    followers.clear();
  };
  const log = {
    head: async () => events.length,
    async *readAll({ from = BEGINNING } = {}) {
      counts.reads++;
      for (let at = from; at < events.length; at += 100) {
        await new Promise(setImmediate);
        yield events.slice(at, at + 100);
      }
    },
    async *follow({ after, signal }: { after: Position; signal: AbortSignal }): AsyncGenerator<Followed> {
      counts.follows++;
      signal.addEventListener('abort', wakeAll, { once: true });
      for (let at = after; !signal.aborted; ) {
        if (at === events.length) {
          await new Promise<void>((resolve) => followers.add(resolve));
          continue;
        }
        const fresh = events.slice(at);
        at = events.length;
        yield { events: fresh, position: at, caughtUp: true };
      }
    },
  } as unknown as EventLog;
  return {
    log,
    counts,
    events,
    append(type: string, count = 1) {
      for (let n = 0; n < count; n++) {
        const position = events.length + 1;
        events.push({ id: `${position}`, type, data: {}, meta: {}, stream: 's', revision: position - 1, position });
      }
      wakeAll();
    },
  };
}

/** Keeps its place in memory, and notes what it is given. */
function subject(name: string, types: readonly string[] | undefined, work: () => Promise<void> = async () => {}) {
  const state = { taken: [] as Position[], batches: 0, position: 0 };
  const one: Subject = {
    name,
    types: types && new Set(types),
    begin: async () => ({ position: state.position, generation: 1, stuckAt: null }),
    async apply(events, { from, to }) {
      expect(from, 'batches follow each other without a gap').to.equal(state.position);
      await work();
      state.batches++;
      state.taken.push(...events.map(({ position }) => position));
      state.position = to;
    },
    forget: () => undefined,
    isTransient: () => false,
    stuck: async () => undefined,
  };
  return { one, state };
}

describe('the log reader', () => {
  const database = { kind: 'embedded' } as Database;
  let memory: ReturnType<typeof memoryLog>;
  let following: Following;
  let ends: (() => Promise<void>)[] = [];
  beforeEach(() => {
    memory = memoryLog();
    following = new Following({ database, eventLog: memory.log, log: logger });
  });
  afterEach(async () => {
    await Promise.all(ends.map((end) => end()));
    ends = [];
    await following.close();
  });
  const follow = (one: Subject) => {
    const followed = following.follow(one, { log: logger, by: 'each process' });
    ends.push(() => followed.close());
    return followed.status;
  };

  it('reads the log once for forty followers, and calls only those that listen', async () => {
    memory.append('A', 10);
    const subjects = Array.from({ length: 40 }, (_, n) => subject(`s${n}`, [n === 0 ? 'A' : 'B']));
    const statuses = subjects.map(({ one }) => follow(one));
    await until('all have caught up', () => statuses.every(({ caughtUp }) => caughtUp));
    const before = memory.counts.reads;
    memory.append('A', 5);
    await until('all are at the end', () => statuses.every(({ position }) => position === 15));
    expect(memory.counts).to.deep.equal({ reads: before, follows: 1 });
    expect(subjects[0]?.state.taken).to.deep.equal(Array.from({ length: 15 }, (_, n) => n + 1));
    expect(subjects.slice(1).map(({ state }) => state.batches)).to.deep.equal(Array(39).fill(0));
  });

  it('lets a follower apply nothing while its idle checkpoint is being stored', async () => {
    const storing = gate();
    const idle = {
      rest: () => undefined,
      wake: () => undefined,
      store: async () => undefined,
      settled: () => storing.wait(),
    };
    const { one, state } = subject('one', ['A']);
    const tools = { reader: following.reader, idle: idle as unknown as IdleCheckpoints, log: logger };
    const end = new AbortController();
    const running = new Follower(one, tools).run(end.signal);
    ends.push(() => {
      end.abort();
      return running;
    });
    memory.append('A');
    await storing.reached;
    await new Promise(setImmediate);
    expect(state.taken).to.deep.equal([]);
    storing.open();
    await until('it is applied', () => state.taken.length === 1);
  });

  it('does not let a slow follower delay others, and delivers everything once in growing batches', async () => {
    const held = gate();
    const slow = subject('slow', ['A'], held.wait);
    const fast = subject('fast', ['A']);
    const all = subject('all', undefined);
    const statuses = [slow, fast, all].map(({ one }) => follow(one));
    await until('all have caught up', () => statuses.every(({ caughtUp }) => caughtUp));
    for (let n = 0; n < 50; n++) {
      memory.append('A');
      await new Promise(setImmediate);
    }
    await until('the others have it all', () => [fast, all].every(({ state }) => state.taken.length === 50));
    expect(slow.state.taken).to.deep.equal([]);
    held.open();
    await until('it has it all', () => slow.state.taken.length === 50);
    const wanted = Array.from({ length: 50 }, (_, n) => n + 1);
    for (const { state } of [slow, fast, all]) expect(state.taken).to.deep.equal(wanted);
    expect(slow.state.batches).to.be.below(5);
  });

  it('splits a batch of large events into parts, each with its position in the log', async () => {
    const sizes: number[] = [];
    const { one, state } = subject('heavy', ['A']);
    const heavy: Subject = {
      ...one,
      weigh: ({ position }) => (position === 5 ? 5_000 : 400),
      async apply(events, move) {
        expect(move.to).to.be.at.least(events.at(-1)?.position ?? 0);
        sizes.push(events.length);
        await one.apply(events, move);
      },
    };
    memory.append('A', 7);
    memory.append('B', 3);
    const status = follow(heavy);
    await until('it has caught up', () => status.caughtUp);
    expect(state.taken).to.deep.equal([1, 2, 3, 4, 5, 6, 7]);
    expect(sizes).to.deep.equal([2, 2, 1, 2]);
    expect(state.position).to.equal(10);
  });

  it('lets a follower whose inbox overflows read the log itself and rejoin without gaps or duplicates', async () => {
    const held = gate();
    const slow = subject('slow', ['A'], held.wait);
    const status = follow(slow.one);
    await until('it has caught up', () => status.caughtUp);
    const before = memory.counts.reads;
    for (let n = 0; n < 30; n++) {
      memory.append('A', 500);
      memory.append('B', 10);
      await new Promise(setImmediate);
    }
    held.open();
    await until('it is at the end', () => status.position === memory.events.length);
    memory.append('A');
    await until('it gets what is new', () => status.position === memory.events.length);
    expect(memory.counts.reads).to.be.above(before);
    expect(memory.counts.follows).to.equal(1);
    const wanted = memory.events.filter(({ type }) => type === 'A').map(({ position }) => position);
    expect(slow.state.taken).to.deep.equal(wanted);
  });

  it('does not count a follower as caught up whose inbox has more than a batch that it has read itself', async () => {
    const [reading, first, second] = [gate(), gate(), gate()];
    const { log, events } = memory;
    Object.assign(log, {
      async *readAll({ from = BEGINNING } = {}) {
        await reading.wait();
        yield events.slice(from);
      },
    });
    memory.append('A', 10);
    const gates = [first, second];
    const { one, state } = subject('late', ['A'], async () => gates.shift()?.wait());
    const status = follow(one);
    await reading.reached;
    memory.append('A', 1_500);
    await until('they are in its inbox', () => following.reader.position === 1_510);
    reading.open();
    await first.reached;
    memory.append('A', 100);
    await until('they are in its inbox, too', () => following.reader.position === 1_610);
    first.open();
    await second.reached;
    expect({ position: status.position, caughtUp: status.caughtUp }).to.deep.equal({
      position: 1_510,
      caughtUp: false,
    });
    second.open();
    await until('it is at the end', () => status.position === 1_610);
    expect(state.taken).to.deep.equal(Array.from({ length: 1_610 }, (_, n) => n + 1));
  });

  /** For one follower, without a time after which it begins by itself. */
  function untilEnded(): Gathering {
    let begin = () => {};
    const release = () => begin();
    const wait = () =>
      new Promise<void>((resolve) => {
        begin = resolve;
      });
    return { wait, end: release };
  }

  it('gives a gathering follower everything in one batch, even if its inbox overflows', async () => {
    const gathering = untilEnded();
    const { one, state } = subject('gathers', ['A']);
    const status = follow({ ...one, gathering });
    await until('it has caught up', () => status.caughtUp);
    for (let n = 0; n < 5; n++) {
      memory.append('A');
      await new Promise(setImmediate);
    }
    expect(state.batches, 'it waits').to.equal(0);
    gathering.end();
    await until('it is at the end', () => status.position === 5);
    expect(state.batches).to.equal(1);
    memory.append('A');
    await new Promise(setImmediate);
    memory.append('A', 10_001);
    await until('it is at the end again', () => status.position === 10_007);
    expect(state.taken).to.deep.equal(Array.from({ length: 10_007 }, (_, n) => n + 1));
  });

  it('starts a gathering follower once many events have come, and it ends at once', async () => {
    const gathering = untilEnded();
    const { one, state } = subject('gathers', ['A']);
    const followed = following.follow({ ...one, gathering }, { log: logger, by: 'each process' });
    await until('it has caught up', () => followed.status.caughtUp);
    memory.append('A', 150);
    await new Promise(setImmediate);
    expect(state.taken).to.have.length(0);
    memory.append('A', 50);
    await until('all are applied', () => state.taken.length === 200);
    memory.append('A');
    await new Promise(setImmediate);
    // It would wait for ever, because nothing lets it begin.
    await followed.close();
  });

  it('serves consumers without a checkpoint: from any position, in pieces, aborted or far behind', async () => {
    memory.append('A', 250);
    const stop = new AbortController();
    const seen = [0, 100, 250].map((after) => ({ after, positions: [] as Position[] }));
    let hold = true;
    const running = seen.map(async ({ after, positions }) => {
      for await (const step of followLive(following.reader, { after, signal: stop.signal })) {
        for (const event of step.events) positions.push(event.position);
        expect(step.position).to.equal(positions.at(-1));
        while (hold && after === 250) await new Promise(setImmediate);
      }
    });
    for (let n = 0; n < 25; n++) {
      memory.append('A', 500);
      await new Promise(setImmediate);
    }
    const head = memory.events.length;
    await until('the others are at the end', () => [0, 1].every((n) => seen[n]?.positions.at(-1) === head));
    hold = false;
    await until('the slow one is, too', () => seen[2]?.positions.at(-1) === head);
    for (const { after, positions } of seen) {
      expect(positions).to.deep.equal(Array.from({ length: head - after }, (_, index) => after + index + 1));
    }
    expect(memory.counts.follows).to.equal(1);
    stop.abort();
    await Promise.all(running);
  });

  it('lets a follower join during writes without gaps or duplicates', async () => {
    memory.append('A', 1_000);
    let writing = true;
    const writer = (async () => {
      while (writing) {
        memory.append('A', 3);
        await new Promise(setImmediate);
      }
    })();
    const late = Array.from({ length: 10 }, (_, n) => subject(`late ${n}`, ['A']));
    for (const { state } of late) state.position = Math.floor(Math.random() * 1_000);
    const starts = late.map(({ state }) => state.position);
    const statuses = late.map(({ one }) => follow(one));
    await until('all have caught up', () => statuses.every(({ caughtUp }) => caughtUp));
    writing = false;
    await writer;
    const head = memory.events.length;
    await until('all are at the end', () => statuses.every(({ position }) => position === head));
    for (const [n, { state }] of late.entries()) {
      const start = starts[n] ?? 0;
      expect(state.taken).to.deep.equal(Array.from({ length: head - start }, (_, index) => start + index + 1));
    }
  });
});

describe('own events on EventStoreDB', () => {
  it('are returned as the original objects, so that nothing is decrypted or validated again', async () => {
    await using standIn = closing(await startEventStoreStandIn());
    await using eventLog = closing(await openEventStoreLog({ url: standIn.url, log: logger }));
    const noted = defineEvent({
      type: 'Noted',
      version: 1,
      doc: 'test',
      schema: z.object({ person: z.string(), text: z.string() }),
      personal: { person: ({ person }) => person, fields: ['text'] },
    });
    let asked = 0;
    const key = Buffer.alloc(32, 1);
    const keys = {
      findOrCreate: async () => key,
      create: async (names: readonly string[]) => names.map(() => key),
      find: async () => {
        asked++;
        return key;
      },
    };
    const store = createEventStore({
      log: eventLog,
      catalogue: new Map([[noted.type, noted as unknown as EventDefinition]]),
      counters: { take: async () => 1 },
      keys,
    });
    const stop = new AbortController();
    const after = await eventLog.head();
    const seen: LoggedEvent[] = [];
    let live = false;
    const following = (async () => {
      for await (const { events, caughtUp } of eventLog.follow({ after, signal: stop.signal })) {
        live ||= caughtUp;
        seen.push(...events);
      }
    })();
    await until('it follows', () => live);
    const events = await store.prepare([noted.draft({ person: 'p', text: 'secret' })], testOrigin);
    await store.append('note-1', events, 'none');
    await until('it came back', () => seen.length === 1);
    const [event] = seen;
    expect(event?.data).to.equal(events[0]?.data);
    // Sealing has looked whether the person was erased meanwhile.
    asked = 0;
    expect((await store.decode(event as LoggedEvent)).data).to.deep.equal({ person: 'p', text: 'secret' });
    expect(asked, 'keys that were asked for').to.equal(0);
    stop.abort();
    await following;
  });
});
