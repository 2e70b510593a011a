/** Rate limits in Redis: counted in memory while it is unavailable, and in Redis again when it is back. */
import { expect } from 'chai';
import { createLogger } from '../../../infra/logging.ts';
import { createLimitStores } from '../../../infra/redis/limits.ts';
import { closing } from '../../support/fixture.ts';
import { needsServer } from '../../support/needs.ts';
import { startProxy } from '../../support/proxy.ts';
import { until } from '../../support/until.ts';

describe('rate limits in Redis', function () {
  this.timeout(30_000);

  it('are counted in memory while Redis is unavailable, and in Redis afterwards', async function () {
    const { hostname, port } = new URL(needsServer('TEST_REDIS_URL', this));
    await using proxy = closing(await startProxy({ host: hostname, port: Number(port || 6379) }));
    await proxy.stop();
    const name = `test-${process.pid}-${Date.now()}`;
    const open = async () =>
      closing(await createLimitStores(`redis://127.0.0.1:${proxy.port}`, createLogger('silent')));
    await using one = await open();
    await using other = await open();
    const store = one.storeFor(name, 60_000);
    const hits = async () => (await store.increment('someone')).totalHits;
    const known = async () => (await store.get?.('someone'))?.totalHits;
    expect([await hits(), await hits(), await hits()], 'away at the start').to.deep.equal([1, 2, 3]);
    expect(await known()).to.equal(3);

    await proxy.start();
    const shared = other.storeFor(name, 60_000);
    await until('both count in Redis', async () => {
      const { totalHits } = await shared.increment('together');
      return (await store.increment('together')).totalHits === totalHits + 1;
    });
    expect(await hits()).to.equal(1);
    expect((await shared.increment('someone')).totalHits).to.equal(2);
    expect(await known()).to.equal(2);

    await proxy.stop();
    const before = Date.now();
    for (let expected = 4; expected < 40; expected++) expect(await hits(), 'away again').to.equal(expected);
    expect(Date.now() - before, 'nobody waits for it each time').to.be.below(20_000);
    expect(await known()).to.equal(39);
  });
});
