/** Locks that processes share: one holder at a time, the next one when it has ended, however it has ended. */
import { expect } from 'chai';
import { createLocks } from '../../infra/database/locks.ts';
import type { Locks } from '../../shared/ports/locks.ts';
import { needsServer } from '../support/needs.ts';
import { databaseOnServer } from '../support/world.ts';

describe('locks', function () {
  this.timeout(60_000);
  let opened: Awaited<ReturnType<typeof databaseOnServer>> | undefined;
  let processes: readonly Locks[];
  before(async function () {
    needsServer('TEST_DATABASE_URL', this);
    opened = await databaseOnServer();
    processes = [createLocks(opened.database), createLocks(opened.database)];
  });
  after(() => opened?.close());

  it('one at a time has a name, also when work fails; another name does not wait', async () => {
    let holders = 0;
    let most = 0;
    const work = async (fails: boolean) => {
      most = Math.max(most, ++holders);
      await opened?.database.pool.query('SELECT pg_sleep(0.01)');
      holders--;
      if (fails) throw new Error('on purpose');
    };
    const all = Array.from({ length: 12 }, (_, n) => {
      const locks = processes[n % 2] as Locks;
      return locks.holding('one', () => work(n % 3 === 0));
    });
    const outcomes = (await Promise.allSettled(all)).map(({ status }) => status);
    expect(outcomes.filter((status) => status === 'rejected')).to.have.length(4);
    expect(most).to.equal(1);
    const [here, there] = processes as [Locks, Locks];
    expect(await here.holding('one', () => there.holding('two', async () => 'both'))).to.equal('both');
  });
});
