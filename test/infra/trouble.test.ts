/** What fails again and again is said once in a while, and its end is said. */
import { expect } from 'chai';
import { createTrouble } from '../../infra/trouble.ts';

describe('trouble', () => {
  it('is told at once, repeated after half a minute, and ends with one line', () => {
    const lines: string[] = [];
    let now = 1_000_000;
    const log = {
      warn: (about: { forMs: number }, text: string) => lines.push(`${text} ${about.forMs}`),
      info: (about: { afterMs: number }, text: string) => lines.push(`${text} ${about.afterMs}`),
    };
    const trouble = createTrouble(log as never, 'fails', 'works', () => now);
    trouble.worked();
    for (let n = 0; n < 301; n++) {
      trouble.failed(new Error('away'));
      now += 100;
    }
    trouble.worked();
    trouble.worked();
    trouble.failed(new Error('away'));
    expect(lines).to.deep.equal(['fails 0', 'fails 30000', 'works 30100', 'fails 0']);
  });
});
