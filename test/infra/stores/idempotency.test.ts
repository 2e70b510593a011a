/** Leases on requests with an `Idempotency-Key`: who runs one, who may take it over, and who finds that out. */
import { expect } from 'chai';
import { createIdempotencyStore, purgeIdempotency } from '../../../infra/stores/idempotency.ts';
import { AppError } from '../../../shared/errors.ts';
import type { IdempotencyStore } from '../../../shared/ports/idempotency.ts';
import { fixture } from '../../support/fixture.ts';
import { failureOf } from '../../support/kit.ts';
import { until } from '../../support/until.ts';
import { embeddedDatabase } from '../../support/world.ts';

const LEASE_MS = 1_200;
const request = Buffer.alloc(32, 1);

describe('idempotency leases', function () {
  this.timeout(60_000);
  let keys = 0;
  const key = () => Buffer.alloc(32, ++keys);
  const process = (name: string, pool = place.database.pool) => createIdempotencyStore(pool, name, LEASE_MS);
  const place = fixture(embeddedDatabase);

  it('stay with their process if a request takes longer', async () => {
    const hash = key();
    const [one, two] = [process('one'), process('two')];
    expect((await one.begin('s', hash, request)).taken).to.equal(true);
    const end = Date.now() + 2 * LEASE_MS;
    await until('two leases have passed', async () => {
      expect((await two.begin('s', hash, request)).taken).to.equal(false);
      return Date.now() > end;
    });
    await one.finish('s', hash, Buffer.from('answer'));
    expect((await two.begin('s', hash, request)).record).to.include({ state: 'done' });
  });

  it('are taken over from a dead process with its stored steps', async () => {
    const hash = key();
    let gone = false;
    const pool = {
      // Its renewals no longer arrive.
      query: (...args: [string, unknown[]]) =>
        gone ? Promise.reject(new Error('gone')) : place.database.pool.query(...args),
    } as unknown as typeof place.database.pool;
    const [one, two] = [process('one', pool), process('two')];
    await one.begin('s', hash, request);
    await one.save('s', hash, Buffer.from('intents'));
    gone = true;
    const taken = await until('it is taken over', async () => {
      const begun = await two.begin('s', hash, request);
      return begun.taken ? begun : undefined;
    });
    expect(taken?.record?.sealed?.toString()).to.equal('intents');

    // It was only slow: what it is about to append must not be appended in addition to what the other appends.
    gone = false;
    const refused = await one.save('s', hash, Buffer.from('others')).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(AppError).and.include({ status: 409 });
    await one.abandon('s', hash);
    expect((await process('three').begin('s', hash, request)).taken, 'it still runs').to.equal(false);
    await two.finish('s', hash, Buffer.from('answer'));
  });

  it('are released as soon as the database is back if the request ended during an outage', async () => {
    const [ended, begun, forgotten] = [key(), key(), key()];
    let away = false;
    let cut = false;
    const pool = {
      query: async (...args: [string, unknown[]]) => {
        if (away) throw new Error('gone');
        const done = await place.database.pool.query(...args);
        if (!cut) return done;
        cut = false;
        throw new Error('gone before the answer');
      },
    } as unknown as typeof place.database.pool;
    // No lease expires during the test.
    const [one, two] = ['one', 'two'].map((name) =>
      createIdempotencyStore(name === 'one' ? pool : place.database.pool, name, 600_000),
    ) as [IdempotencyStore, IdempotencyStore];
    const failed = (asked: Promise<unknown>) => failureOf(asked).then((message) => expect(message).to.match(/^gone/));
    await one.begin('s', ended, request);
    await one.save('s', ended, Buffer.from('intents'));
    await one.begin('s', forgotten, request);
    cut = true;
    await failed(one.begin('s', begun, request));
    away = true;
    await failed(one.abandon('s', ended));
    await failed(one.forget('s', forgotten));
    for (const hash of [ended, begun, forgotten]) {
      expect((await two.begin('s', hash, request)).taken, 'while it is away').to.equal(false);
    }
    away = false;
    const taken = (hash: Buffer) =>
      until('the key is free', async () => {
        const found = await two.begin('s', hash, request);
        return found.taken && found;
      });
    expect((await taken(ended)).record?.sealed?.toString()).to.equal('intents');
    for (const hash of [begun, forgotten]) await taken(hash);
  });

  it('stay with the run that has taken over if they are released late', async () => {
    const hash = key();
    let away = false;
    let told: unknown;
    const pool = {
      query: async (...args: [string, unknown[]]) => {
        if (away) throw new Error('gone');
        const done = await place.database.pool.query(...args);
        if (args[0].startsWith('UPDATE')) told = done.rowCount;
        return done;
      },
    } as unknown as typeof place.database.pool;
    const [one, two] = [process('one', pool), process('two')];
    await one.begin('s', hash, request);
    away = true;
    await one.abandon('s', hash).catch(() => undefined);
    await place.database.pool.query('UPDATE service.idempotency SET locked_until = 0 WHERE key_hash = $1', [hash]);
    expect((await two.begin('s', hash, request)).taken).to.equal(true);
    away = false;
    await until('the first one has told that it is over', () => told !== undefined);
    expect(told, 'records that it changed').to.equal(0);
    expect((await process('three').begin('s', hash, request)).taken, 'it still runs').to.equal(false);
    await two.finish('s', hash, Buffer.from('answer'));
  });

  it('protect the stored steps of a later run of the same process from a late statement', async () => {
    const hash = key();
    let late: (() => Promise<unknown>) | undefined;
    let silent = false;
    const pool = {
      query: (...args: [string, unknown[]]) => {
        if (!silent) return place.database.pool.query(...args);
        late = () => place.database.pool.query(...args);
        return Promise.reject(new Error('Query read timeout'));
      },
    } as unknown as typeof place.database.pool;
    const one = process('one', pool);
    await one.begin('s', hash, request);
    silent = true;
    const refused = await one.save('s', hash, Buffer.from('first')).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(Error);
    silent = false;
    await one.abandon('s', hash);
    expect((await one.begin('s', hash, request)).taken).to.equal(true);
    await one.save('s', hash, Buffer.from('second'));
    await late?.();
    await one.abandon('s', hash);
    expect((await one.begin('s', hash, request)).record?.sealed?.toString()).to.equal('second');
    await one.finish('s', hash, Buffer.from('answer'));
  });

  it('prevent a process that lost its lease from replacing the response of the other', async () => {
    const hash = key();
    const [slow, other] = [process('slow'), process('other')];
    await slow.begin('s', hash, request);
    await place.database.pool.query('UPDATE service.idempotency SET locked_until = 0 WHERE key_hash = $1', [hash]);
    expect((await other.begin('s', hash, request)).taken).to.equal(true);
    const refusal = () => slow.finish('s', hash, Buffer.from('of the slow one')).catch((error: unknown) => error);
    expect(await refusal())
      .to.be.instanceOf(AppError)
      .and.include({ status: 409 });
    await other.finish('s', hash, Buffer.from('of the other'));
    expect(await refusal())
      .to.be.instanceOf(AppError)
      .and.include({ status: 409 });
    await slow.abandon('s', hash);
    const { record } = await process('third').begin('s', hash, request);
    expect([record?.state, record?.sealed?.toString()]).to.deep.equal(['done', 'of the other']);
  });

  it("use the database's clock, whatever the clocks of the hosts", async () => {
    const real = Date.now;
    const hash = key();
    try {
      Date.now = () => real() - 3_600_000;
      const behind = process('behind');
      expect((await behind.begin('s', hash, request)).taken).to.equal(true);
      Date.now = () => real() + 25 * 3_600_000;
      const ahead = process('ahead');
      expect((await ahead.begin('s', hash, request)).taken, 'taken from one that runs').to.equal(false);
      await behind.finish('s', hash, Buffer.from('answer'));
      expect(await purgeIdempotency(place.database.pool)).to.equal(0);
      expect((await ahead.begin('s', hash, request)).record?.state).to.equal('done');
    } finally {
      Date.now = real;
    }
    await place.database.pool.query(
      'UPDATE service.idempotency SET created_at = created_at - 86400001 WHERE key_hash = $1',
      [hash],
    );
    expect(await purgeIdempotency(place.database.pool)).to.equal(1);
  });

  it('share one secret between processes that start at once, and find it again', async () => {
    const secrets = await Promise.all(Array.from({ length: 6 }, (_, n) => process(`starts-${n}`).secret()));
    expect(secrets[0]).to.have.length(32);
    for (const secret of [...secrets, await process('later').secret()]) {
      expect(secret.equals(secrets[0] as Buffer)).to.equal(true);
    }
  });
});
