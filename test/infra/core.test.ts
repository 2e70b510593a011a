/** Opening the stores. */
import { expect } from 'chai';
import { readConfig } from '../../infra/config.ts';
import { openCore } from '../../infra/core.ts';
import type { Database } from '../../infra/database/database.ts';
import { createLogger } from '../../infra/logging.ts';
import { failureOf } from '../support/kit.ts';

describe('the core', () => {
  it('closes the database when it cannot be opened', async () => {
    let closed = 0;
    const database = {
      get db(): never {
        throw new Error('no such host');
      },
      close: async () => {
        closed++;
      },
    };
    const config = { ...readConfig({ DATA_DIR: '/nonexistent' }), startTimeoutMs: 1 };
    const opening = openCore(config, createLogger('silent'), {
      database: Promise.resolve(database as unknown as Database),
    });
    expect(await failureOf(opening)).to.match(/^the database could not be reached in time: no such host/);
    expect(closed).to.equal(1);
  });
});
