/** Keys that a rebuild has written. */
import { expect } from 'chai';
import { WrittenKeys } from '../../../../infra/read-models/rebuild/written-keys.ts';

/** Keys as they are: alike but for a few characters. */
const keyOf = (n: number) =>
  `1,5"agent,4"hour,${1_764_200_000_000 + 3_600_000 * (n % 97)},22"${String(n).padStart(22, 'x')},`;

describe('written keys', () => {
  it('are known, and of others few are taken for known', () => {
    const keys = new WrittenKeys();
    const count = 100_000;
    for (let n = 0; n < count; n++) if (!keys.add('usage', keyOf(n))) throw new Error(`no room for ${keyOf(n)}`);
    let mistaken = 0;
    for (let n = 0; n < count; n++) {
      if (!keys.mayHave('usage', keyOf(n))) throw new Error(`forgot ${keyOf(n)}`);
      if (keys.mayHave('usage', keyOf(count + n))) mistaken++;
    }
    expect(mistaken / count, 'share of false positives').to.be.below(0.01);
  });

  it('of one table are unknown in another', () => {
    const keys = new WrittenKeys();
    for (let n = 0; n < 1_000; n++) keys.add('days', keyOf(n));
    const mistaken = Array.from({ length: 1_000 }, (_, n) => keys.mayHave('usage', keyOf(n))).filter(Boolean);
    expect(mistaken.length).to.be.below(20);
  });

  it('are bounded', () => {
    const keys = new WrittenKeys(2 ** 20);
    let added = 0;
    while (keys.add('usage', keyOf(added))) added++;
    // The room of 87,381 keys; a few more were taken for known.
    expect(added).to.be.within(87_381, 88_000);
    expect(keys.mayHave('usage', keyOf(0))).to.equal(true);
    expect(new WrittenKeys(0).add('usage', keyOf(0))).to.equal(false);
  });
});
