/** The log as several webhooks read it: each gets every event after its place, and most of them from memory. */
import { expect } from 'chai';
import fc from 'fast-check';
import { createLogCache } from '../../../../commands/policies/webhooks/log-cache.ts';
import type { LoggedEvent, ReadAllOptions } from '../../../../shared/ports/event-log.ts';
import { failureOf } from '../../../support/kit.ts';

const eventAt = (position: number) => ({ position, type: 'Tested' }) as LoggedEvent;

/** A log with events at these positions, in pages of so many. */
function logOf(positions: number[], size: number) {
  const reads: number[] = [];
  return {
    positions,
    reads,
    async *readAll({ from = 0 }: ReadAllOptions = {}) {
      reads.push(from);
      const rest = positions.filter((position) => position > from);
      for (let at = 0; at < rest.length; at += size) yield rest.slice(at, at + size).map(eventAt);
    },
  };
}

const positionsOf = (events: readonly LoggedEvent[]) => events.map(({ position }) => position);

describe('log cache of webhook deliveries', () => {
  it('reads a page once for concurrent readers and returns the same object to all', async () => {
    const log = logOf([3, 5, 8], 10);
    const logCache = createLogCache(log);
    const all = await Promise.all([0, 0, 3, 4, 5].map((from) => logCache.after(from)));
    expect(all.map(positionsOf)).to.deep.equal([[3, 5, 8], [3, 5, 8], [5, 8], [5, 8], [8]]);
    expect(new Set(all.map((events) => events.at(-1))).size).to.equal(1);
    expect(log.reads).to.deep.equal([0]);
  });

  it('reads new events from the end of the last page', async () => {
    const log = logOf([3, 5], 10);
    const logCache = createLogCache(log);
    await logCache.after(0);
    expect(await logCache.after(5)).to.deep.equal([]);
    log.positions.push(9);
    expect(positionsOf(await logCache.after(5))).to.deep.equal([9]);
    expect(positionsOf(await logCache.after(3))).to.deep.equal([5]);
    expect(log.reads).to.deep.equal([0, 5, 5]);
  });

  it('a failed read fails its caller, and the next caller tries again', async () => {
    const log = logOf([3], 10);
    let fails = true;
    const logCache = createLogCache({
      readAll(options) {
        if (fails) throw new Error('the store is away');
        return log.readAll(options);
      },
    });
    expect(await failureOf(logCache.after(0))).to.equal('the store is away');
    fails = false;
    expect(positionsOf(await logCache.after(0))).to.deep.equal([3]);
  });

  it('a reader at any position gets every event once and in order, whatever other readers do', async () => {
    const gaps = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(
        gaps,
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.nat(100), { maxLength: 8 }),
        async (all, size, froms) => {
          let last = 0;
          const positions = all.map((gap) => {
            last += gap;
            return last;
          });
          const logCache = createLogCache(logOf(positions, size));
          await Promise.all(
            froms.map(async (from) => {
              const seen: number[] = [];
              for (let at = from; ; at = seen.at(-1) ?? from) {
                const page = positionsOf(await logCache.after(at));
                if (page.length === 0) break;
                seen.push(...page);
              }
              expect(seen).to.deep.equal(positions.filter((position) => position > from));
            }),
          );
        },
      ),
      { numRuns: 100 },
    );
  });
});
