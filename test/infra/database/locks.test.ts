/** Locks that processes share: one holder at a time, the next one when it has ended, however it has ended. */
import { expect } from 'chai';
import { createLocks } from '../../../infra/database/locks.ts';
import { AppError } from '../../../shared/errors.ts';
import { fixture, fixtureForEach } from '../../support/fixture.ts';
import { gate } from '../../support/memory-world.ts';
import { describeWith } from '../../support/needs.ts';
import { until } from '../../support/until.ts';
import { databaseOnServer } from '../../support/world.ts';

describeWith('TEST_DATABASE_URL', 'locks', function () {
  this.timeout(60_000);
  const opened = fixture(databaseOnServer);
  const here = fixtureForEach(() => createLocks(opened.database));
  const there = fixtureForEach(() => createLocks(opened.database));

  const query = async (text: string) => (await opened.database.pool.query(text)).rows;
  /** Connections that hold locks, or may. */
  const connections = () =>
    query(
      `SELECT pid FROM pg_stat_activity WHERE application_name = 'signalbox locks' AND datname = current_database()`,
    );

  it('have one holder per name at a time, even if work fails, and do not block other names', async () => {
    let holders = 0;
    let most = 0;
    const work = async (fails: boolean) => {
      most = Math.max(most, ++holders);
      await query('SELECT pg_sleep(0.01)');
      holders--;
      if (fails) throw new Error('on purpose');
    };
    const all = Array.from({ length: 12 }, (_, n) => [here, there][n % 2]?.holding('one', () => work(n % 3 === 0)));
    const outcomes = (await Promise.allSettled(all)).map(({ status }) => status);
    expect(outcomes.filter((status) => status === 'rejected')).to.have.length(4);
    expect(most).to.equal(1);
    expect(await here.holding('one', () => there.holding('two', async () => 'both'))).to.equal('both');
  });

  it('share one connection per process in any number, and leave the pool to their holders', async () => {
    const count = 3 * opened.database.pool.options.max;
    const all = gate();
    let holders = 0;
    const work = async () => {
      if (++holders === count) all.open();
      await all.wait();
      return query('SELECT pg_sleep(0.01)');
    };
    const holding = Array.from({ length: count }, (_, n) => here.holding(`name ${n}`, work));
    await all.wait();
    expect(await connections()).to.have.length(1);
    expect(await Promise.all(holding)).to.have.length(count);
    expect(await there.holding('name 0', async () => 'free again')).to.equal('free again');
  });

  it('notify a holder whose connection breaks, and the next holder gets the name', async () => {
    const held = gate();
    let lost: AbortSignal | undefined;
    const first = here.holding('one', async (signal) => {
      lost = signal;
      await held.wait();
      return 'first';
    });
    await held.reached;
    const second = there.holding('one', async (signal) => (signal.aborted ? 'lost' : 'second'));
    const [{ pid }] = (await query(
      `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    )) as [{ pid: number }];
    await query(`SELECT pg_terminate_backend(${pid})`);
    expect(await second).to.equal('second');
    await until('the first holder is notified', () => lost?.aborted === true);
    held.open();
    expect(await first).to.equal('first');
    expect(await here.holding('one', async (signal) => signal.aborted), 'it has a new connection').to.equal(false);
  });

  it('are handed to other processes even if a process has callers of its own in line', async () => {
    let waits = true;
    const greedy = Array.from({ length: 4 }, async () => {
      while (waits) await here.holding('one', () => query('SELECT 1'));
    });
    await here.holding('two', async () => undefined);
    expect(await there.holding('one', async () => 'its turn')).to.equal('its turn');
    waits = false;
    await Promise.all(greedy);
  });

  it('are refused to a caller that waits too long', async () => {
    const hasty = createLocks(opened.database, 100);
    const refusal = await here
      .holding('one', () => hasty.holding('one', async () => undefined))
      .catch((error) => error);
    expect(refusal).to.be.instanceOf(AppError);
    expect([refusal.status, refusal.extras.code]).to.deep.equal([409, 'BUSY']);
    await hasty.close();
  });
});
