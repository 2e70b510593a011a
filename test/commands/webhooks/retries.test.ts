/** When failed deliveries are retried. */
import { expect } from 'chai';
import fc from 'fast-check';
import { isOpen, type RetrySchedule, retryDelay } from '../../../commands/webhooks/retries.ts';
import { SETTINGS } from '../../../infra/config.ts';

const SCHEDULE: RetrySchedule = {
  attempts: SETTINGS.webhookMaxAttempts.fallback,
  delaysMs: SETTINGS.webhookRetrySeconds.fallback.map((seconds) => seconds * 1_000),
};

describe('webhooks: back-off', () => {
  it('is 30 s, 5 min, 30 min and 2 h by default, give or take a fifth', () => {
    const pauses = [0, 1, 2, 3, 4].map((attempt) => retryDelay(attempt, SCHEDULE, () => 0.5));
    expect(pauses).to.deep.equal([30_000, 300_000, 1_800_000, 7_200_000, null]);
    expect(retryDelay(0, SCHEDULE, () => 0)).to.equal(24_000);
    expect(retryDelay(0, SCHEDULE, () => 1)).to.equal(36_000);
    const longer = { ...SCHEDULE, attempts: 20 };
    expect(
      retryDelay(9, longer, () => 0.5),
      'the last pause is repeated',
    ).to.equal(28_800_000);
  });

  it('opens the circuit after as many failures in a row as a message has attempts', () => {
    expect([3, 4, 5, 90].map((failures) => isOpen(failures, SCHEDULE))).to.deep.equal([false, false, true, true]);
  });

  it('never exceeds the configured number of attempts', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.integer({ min: 0, max: 3_600_000 }), { minLength: 1, maxLength: 6 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (attempts, delaysMs, random) => {
          for (let attempt = 0; attempt < attempts + 2; attempt++) {
            const pause = retryDelay(attempt, { attempts, delaysMs }, () => random);
            const base = delaysMs[Math.min(attempt, delaysMs.length - 1)] ?? 0;
            if (attempt >= attempts - 1) expect(pause).to.equal(null);
            else expect(pause).to.be.within(Math.floor(base * 0.8), Math.ceil(base * 1.2));
          }
        },
      ),
    );
  });
});
