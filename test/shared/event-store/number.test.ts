/** The step that numbers events. */
import { expect } from 'chai';
import { numbered } from '../../../shared/event-store/number.ts';
import { testOrigin } from '../../support/world.ts';

const counters = { take: (name: string, count = 1) => (name === 'event' ? 40 : -1) + count };

describe('numbered events', () => {
  it('take numbers in a row, and say how many follow in the same append', async () => {
    const metas = await numbered(counters, [{ version: 2 }, { version: 1 }, { version: 5 }], 1_700, testOrigin);
    expect(metas).to.deep.equal([
      { ...testOrigin, version: 2, number: 43, at: 1_700, rest: 2 },
      { ...testOrigin, version: 1, number: 44, at: 1_700, rest: 1 },
      { ...testOrigin, version: 5, number: 45, at: 1_700 },
    ]);
  });

  it('are refused with an origin that metadata cannot hold', async () => {
    const failure = await numbered(counters, [{ version: 1 }], 1_700, { ...testOrigin, tenant: 0 }).catch(String);
    expect(failure).to.match(/tenant/);
  });
});
