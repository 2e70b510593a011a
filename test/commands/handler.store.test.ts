/** The command path on a real embedded store: decisions that race, states that are kept, snapshots. */
import { expect } from 'chai';
import { z } from 'zod';
import type { Decider } from '../../commands/decider.ts';
import { createCommands, type Intent } from '../../commands/handler.ts';
import { createLogger } from '../../infra/logging.ts';
import { createSnapshots } from '../../infra/stores/snapshots.ts';
import { AppError, conflict, LogUnavailableError } from '../../shared/errors.ts';
import type { EventStore } from '../../shared/event-store.ts';
import { defineEvent } from '../../shared/events/define.ts';
import { fixture } from '../support/fixture.ts';
import { until } from '../support/until.ts';
import { openView, testDatabase, testOrigin } from '../support/world.ts';

const added = defineEvent({ type: 'Added', version: 1, doc: 'test', schema: z.object({ amount: z.int() }) });

interface Sum {
  readonly sum: number;
}
const summing: Decider<Sum> = {
  kind: 'sum',
  snapshotVersion: 1,
  initial: { sum: 0 },
  evolve: (state, event) => (event.type === added.type ? { sum: state.sum + Number(event.data.amount) } : state),
};
const context = () => ({ origin: testOrigin });

describe('command handler', function () {
  this.timeout(60_000);
  /** Events that were read from streams since the counter was set back. */
  let read = 0;
  const process = () => {
    const snapshots = createSnapshots(place.database.pool, createLogger('silent'));
    const store: EventStore = {
      ...view.store,
      async readStream(stream, from) {
        const events = await view.store.readStream(stream, from);
        read += events.length;
        return events;
      },
    };
    return createCommands({
      store,
      counters: view.counters,
      snapshots,
    });
  };
  const place = fixture(testDatabase);
  const view = fixture(() => openView(place.database, [added], []));

  const sumOf = async (stream: string) => (await process().load({ ...summing, snapshotVersion: 99 }, stream)).state.sum;

  it('a stream declared as new is not read before the first append', async () => {
    let reads = 0;
    let looks = 0;
    const store: EventStore = {
      ...view.store,
      readStream(stream, from) {
        reads++;
        return view.store.readStream(stream, from);
      },
    };
    const snapshots = {
      find() {
        looks++;
        return Promise.resolve(undefined);
      },
      save: () => undefined,
    };
    const commands = createCommands({ store, counters: view.counters, snapshots });
    const add = (amount: number) =>
      commands.execute(summing, 'new', context(), ({ sum }) => [added.draft({ amount: sum + amount })], {
        fresh: true,
      });
    await add(5);
    await add(1);
    expect([reads, looks]).to.deep.equal([0, 0]);
    expect(await sumOf('new')).to.equal(11);
  });

  it('a stream wrongly declared as new is read, and decided on as it is', async () => {
    await process().execute(summing, 'old', context(), () => [added.draft({ amount: 5 })]);
    const seen: number[] = [];
    const decide = ({ sum }: Sum) => {
      seen.push(sum);
      return [added.draft({ amount: sum + 1 })];
    };
    await process().execute(summing, 'old', context(), decide, { fresh: true });
    expect(seen).to.deep.equal([0, 5]);
    expect(await sumOf('old')).to.equal(11);
    const refuse = ({ sum }: Sum) => {
      throw conflict(`the sum is ${sum}`);
    };
    const refused = await process()
      .execute(summing, 'old', context(), refuse, { fresh: true })
      .catch((error: Error) => error.message);
    expect(refused, 'a refusal is decided on what the log says').to.equal('the sum is 11');
  });

  it('commands queued while the log is unavailable fail after one time-out in total', async () => {
    let reads = 0;
    const away: EventStore = {
      ...view.store,
      async readStream() {
        reads++;
        await new Promise((resolve) => setTimeout(resolve, 100));
        throw new LogUnavailableError('read of away: no answer');
      },
    };
    const commands = createCommands({
      store: away,
      counters: view.counters,
    });
    const add = () => commands.execute(summing, 'away', context(), () => [added.draft({ amount: 1 })]);
    const failed = await Promise.allSettled(Array.from({ length: 20 }, add));
    for (const one of failed) expect(one.status === 'rejected' && one.reason).to.be.instanceOf(LogUnavailableError);
    expect(reads).to.equal(1);
    await add().catch(() => undefined);
    expect(reads, 'whoever comes later asks again').to.equal(2);
  });

  it('a step that is repeated while the log is unavailable is not decided again: its events are written once', async () => {
    const recorded: Intent[] = [];
    const intents = (of: readonly Intent[]) => ({
      recorded: of,
      async record(step: number, intent: Intent) {
        recorded[step] = intent;
      },
    });
    const add = () => [added.draft({ amount: 7 })];
    await process().execute(summing, 'repeated', { origin: testOrigin, intents: intents([]) }, add);

    let away = true;
    const store: EventStore = {
      ...view.store,
      append: (...args) =>
        away ? Promise.reject(new LogUnavailableError('append of repeated: no answer')) : view.store.append(...args),
    };
    const commands = createCommands({ store, counters: view.counters });
    const first = recorded.slice();
    let decided = 0;
    const again = () =>
      commands.execute(summing, 'repeated', { origin: testOrigin, intents: intents(first) }, () => {
        decided++;
        // Written under an id of its own as soon as the log is back: where it was decided, it is doubled.
        away = false;
        return add();
      });
    const failure = await again().catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(AppError).and.include({ status: 503 });
    expect(decided, 'decisions while the log was away').to.equal(0);
    away = false;
    const { events } = await again();
    expect(events.map(({ id }) => id)).to.deep.equal(first[0]?.events.map(({ id }) => id));
    expect([decided, await sumOf('repeated')]).to.deep.equal([0, 7]);
  });

  it('each of many concurrent decisions sees the previous one, in one process and in two', async () => {
    const [one, two] = [process(), process()];
    const results = await Promise.allSettled(
      Array.from({ length: 60 }, (_, n) =>
        (n % 6 ? one : two).execute(summing, 'sum-race', context(), ({ sum }) => {
          if (sum >= 40) throw conflict('full');
          return [added.draft({ amount: 1 })];
        }),
      ),
    );
    expect(results.filter((result) => result.status === 'fulfilled')).to.have.length(40);
    expect(await sumOf('sum-race')).to.equal(40);
  });

  it('a rejection or "nothing to do" is decided on the current state of the log', async () => {
    const [one, two] = [process(), process()];
    await one.execute(summing, 'sum-stale', context(), () => [added.draft({ amount: 5 })]);
    await two.execute(summing, 'sum-stale', context(), () => [added.draft({ amount: -5 })]);
    const raise = ({ sum }: Sum) => (sum >= 5 ? [] : [added.draft({ amount: 5 })]);
    expect((await one.execute(summing, 'sum-stale', context(), raise)).events).to.have.length(1);
    await two.execute(summing, 'sum-stale', context(), () => [added.draft({ amount: -5 })]);
    const spend = ({ sum }: Sum) => {
      if (sum > 0) throw new AppError(400, 'not empty');
      return [added.draft({ amount: 1 })];
    };
    expect((await one.execute(summing, 'sum-stale', context(), spend)).events).to.have.length(1);
  });

  it('a rejection is not repeated from the cache once another process has changed the stream', async () => {
    const [one, two] = [process(), process()];
    const needs = (sum: number) => (state: Sum) => {
      if (state.sum < sum) throw conflict('too little');
      return [added.draft({ amount: 1 })];
    };
    for (let sum = 1; sum <= 3; sum++) {
      const refused = await one.execute(summing, 'refused', context(), needs(sum)).catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(AppError);
      await two.execute(summing, 'refused', context(), () => [added.draft({ amount: sum })]);
      await one.execute(summing, 'refused', context(), needs(sum));
      await two.execute(summing, 'refused', context(), (state) => [added.draft({ amount: -state.sum })]);
    }
  });

  it('long streams are read from their last snapshot, with the same resulting state', async () => {
    const writer = process();
    for (let n = 0; n < 450; n++)
      await writer.execute(summing, 'sum-long', context(), () => [added.draft({ amount: n })]);
    const saved = await until('a snapshot is saved', async () => {
      const { rows } = await place.database.pool.query(
        "SELECT revision FROM service.snapshots WHERE stream = 'sum-long'",
      );
      return rows[0]?.revision >= 399 ? rows[0] : undefined;
    });
    read = 0;
    const later = process();
    await later.execute(summing, 'sum-long', context(), ({ sum }) => {
      expect(sum).to.equal((449 * 450) / 2);
      return [added.draft({ amount: 1 })];
    });
    expect(read).to.equal(449 - saved.revision);
    read = 0;
    expect(await sumOf('sum-long')).to.equal((449 * 450) / 2 + 1);
    expect(read, 'another version of the state reads everything').to.equal(451);
  });

  it('a snapshot that contradicts the log is not trusted again', async () => {
    await process().execute(summing, 'sum-wrong', context(), () => [added.draft({ amount: 1 })]);
    await place.database.pool.query(
      `INSERT INTO service.snapshots (stream, kind, revision, position, at, state) VALUES ('sum-wrong', 'sum.1', 7, 1, 1, '{"sum":100}')`,
    );
    await process().execute(summing, 'sum-wrong', context(), () => [added.draft({ amount: 1 })]);
    expect(await sumOf('sum-wrong')).to.equal(2);
  });
});
