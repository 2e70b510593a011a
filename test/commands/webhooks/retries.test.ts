/** When failed deliveries are retried. */
import { expect } from 'chai';
import fc from 'fast-check';
import { isOpen, type RetrySchedule, retryAfterMs, retryDelay } from '../../../commands/webhooks/retries.ts';
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

  it('reads Retry-After as seconds or as a date, of a day at most', () => {
    const now = Date.UTC(1994, 10, 6, 8, 49, 7);
    const dates = ['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'];
    for (const value of ['30', ' 30 ', ...dates]) expect(retryAfterMs(value, now), value).to.equal(30_000);
    for (const value of [null, '', '-30', '1.5', 'soon', '2030', 'Sun, 06 Nov 1994 08:49:00 GMT', 'Sunday'])
      expect(retryAfterMs(value, now), String(value)).to.equal(value === '2030' ? 2_030_000 : 0);
    for (const value of ['86401', '9'.repeat(400), 'Sun, 06 Nov 2094 08:49:37 GMT'])
      expect(retryAfterMs(value, now), value).to.equal(86_400_000);
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
