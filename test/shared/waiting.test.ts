/** What fails again and again is logged once in a while, and so is its end. */
import { expect } from 'chai';
import { createOutage } from '../../shared/waiting.ts';

describe('an outage', () => {
  it('is logged at once, repeated after half a minute, and ends with one line', () => {
    const lines: string[] = [];
    let now = 1_000_000;
    const log = {
      warn: (about: { forMs: number }, text: string) => lines.push(`${text} ${about.forMs}`),
      info: (about: { afterMs: number }, text: string) => lines.push(`${text} ${about.afterMs}`),
    };
    const outage = createOutage(log as never, 'fails', 'works', () => now);
    outage.worked();
    for (let n = 0; n < 301; n++) {
      outage.failed(new Error('away'));
      now += 100;
    }
    outage.worked();
    outage.worked();
    outage.failed(new Error('away'));
    expect(lines).to.deep.equal(['fails 0', 'fails 30000', 'works 30100', 'fails 0']);
  });
});
