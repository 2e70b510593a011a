/** Causes of an event: chains that are larger than a page. */
import { expect } from 'chai';
import { historyCauses } from '../../../queries/history/causes.ts';
import type { HistoryReads } from '../../../queries/history/events.ts';

const TEXT = 'x'.repeat(1_000);
const CHAIN = 30;

/** A log in which each event caused the next one. A read gives at most ten events, like one that ends at its bytes. */
function chain(): HistoryReads {
  const actor = { type: 'system', id: 0, name: 'scheduler' };
  const entries = Array.from({ length: CHAIN }, (_, n) => ({
    ...{ id: `e${n}`, number: n, position: n, type: 'T', stream: 's', revision: n, at: 0, actor },
    causation: n === 0 ? null : `e${n - 1}`,
  }));
  const index = {
    settled: async () => undefined,
    find: async (id: string) => entries.find((one) => one.id === id),
    causedBy: async () => [],
    read: async (asked: typeof entries) => asked.slice(0, 10).map((one) => ({ ...one, data: { TEXT }, meta: {} })),
  };
  return { index, store: {} } as unknown as HistoryReads;
}

describe('causes of an event', () => {
  it('end at the size of a page, and go on from the last one', async () => {
    const seen: string[] = [];
    let from = `e${CHAIN - 1}`;
    for (let pages = 1; ; pages++) {
      const { causes, causes_complete } = await historyCauses(chain(), from, false, 12_500);
      const events = causes.filter(({ kind }) => kind === 'event').map(({ id }) => String(id));
      expect(Buffer.byteLength(JSON.stringify(causes))).to.be.below(13_500);
      seen.push(...events);
      if (causes_complete) {
        expect(causes.at(-1)).to.include({ kind: 'schedule' });
        expect(pages).to.equal(3);
        break;
      }
      expect(events).to.have.length(causes.length);
      from = events.at(-1) as string;
    }
    expect(seen).to.deep.equal(Array.from({ length: CHAIN - 1 }, (_, n) => `e${CHAIN - 2 - n}`));
  });

  it('have at least one event, however large it is', async () => {
    const { causes, causes_complete } = await historyCauses(chain(), 'e5', false, 10);
    expect(causes.map(({ id }) => id)).to.deep.equal(['e4']);
    expect(causes_complete).to.equal(false);
  });
});
