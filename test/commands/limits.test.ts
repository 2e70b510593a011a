/** Counts of a moment ago, by which records are created far below their limit. */
import { expect } from 'chai';
import { createRecentCounts } from '../../commands/limits.ts';

describe('the unlocked count below a limit', () => {
  let now = 0;
  let counted = 0;
  const ask = (most: number, there: number, counts: ReturnType<typeof createRecentCounts>) =>
    counts.hasRoom('agents of workspace 1', most, async () => {
      counted++;
      return there;
    });
  beforeEach(() => {
    now = 0;
    counted = 0;
  });

  it('is used up to a thousand below the limit; nearer to it, records are counted under a lock', async () => {
    const counts = () => createRecentCounts(() => now);
    expect(await ask(10_000, 8_998, counts())).to.equal(true);
    expect(await ask(10_000, 8_999, counts())).to.equal(false);
    expect(await ask(1_000, 0, counts()), 'a small limit').to.equal(false);
  });

  it('is refreshed four times a second, and includes records created by this process', async () => {
    const counts = createRecentCounts(() => now);
    const answers: boolean[] = [];
    for (let n = 0; n < 4; n++) answers.push(await ask(10_000, 8_997, counts));
    expect([answers, counted]).to.deep.equal([[true, true, false, false], 1]);
    now = 251;
    expect(await ask(10_000, 8_990, counts)).to.equal(true);
    expect(counted).to.equal(2);
  });

  it('is shared by concurrent requests, and repeated after a failed count', async () => {
    const counts = createRecentCounts(() => now);
    expect(await Promise.all([1, 2, 3].map(() => ask(10_000, 0, counts)))).to.deep.equal([true, true, true]);
    expect(counted).to.equal(1);
    now = 251;
    const failing = () => Promise.reject(new Error('away'));
    const failed = await counts
      .hasRoom('agents of workspace 1', 10_000, failing)
      .catch((error: Error) => error.message);
    expect([failed, await ask(10_000, 0, counts), counted]).to.deep.equal(['away', true, 2]);
  });
});
