/** Rate limits in Redis: not enforced while it is away, enforced again when it is back. */
import { expect } from 'chai';
import type { Options } from 'express-rate-limit';
import { createLimitStores } from '../../infra/limit-stores.ts';
import { createLogger } from '../../infra/logging.ts';
import { startProxy } from '../support/proxy.ts';
import { until } from '../support/until.ts';

describe('rate limits in Redis', function () {
  this.timeout(30_000);

  it('are enforced when Redis comes after the process', async function () {
    const given = process.env.TEST_REDIS_URL;
    if (!given) {
      console.log('      TEST_REDIS_URL is not set: not tested');
      this.skip();
    }
    const { hostname, port } = new URL(given);
    const proxy = await startProxy({ host: hostname, port: Number(port || 6379) });
    await proxy.stop();
    const stores = await createLimitStores(`redis://127.0.0.1:${proxy.port}`, createLogger('silent'));
    try {
      const store = stores.storeFor(`test-${process.pid}-${Date.now()}`, 60_000);
      await Promise.resolve(store.init?.({ windowMs: 60_000 } as Options)).catch(() => undefined);
      await Promise.resolve(store.increment('someone')).then(
        () => expect.fail('Redis is away'),
        () => undefined,
      );
      await proxy.start();
      let hits = 0;
      await until('hits are counted', () =>
        Promise.resolve(store.increment('someone')).then(
          ({ totalHits }) => {
            hits = totalHits;
            return true;
          },
          () => false,
        ),
      );
      expect(hits).to.equal(1);
      expect((await store.increment('someone')).totalHits).to.equal(2);
    } finally {
      await stores.close();
      await proxy.close();
    }
  });
});
