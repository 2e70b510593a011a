/** What follows from how an attempt ends. */
import { expect } from 'chai';
import fc from 'fast-check';
import { delayAfter, isOpen, judge, type RetrySchedule } from '../../../commands/webhooks/deliveries.ts';
import { SETTINGS } from '../../../infra/config.ts';

const SCHEDULE: RetrySchedule = {
  attempts: SETTINGS.webhookMaxAttempts.fallback,
  delaysMs: SETTINGS.webhookRetrySeconds.fallback.map((seconds) => seconds * 1_000),
};
const plain = { now: 1_000, random: () => 0.5 };

describe('webhooks: attempts', () => {
  it('are five by default, after 30 s, 5 min, 30 min and 2 h, give or take a fifth', () => {
    const pauses = [0, 1, 2, 3, 4].map(
      (attempt) => judge({ attempt, success: false, failures: 0 }, SCHEDULE, plain).nextRetryAt,
    );
    expect(pauses).to.deep.equal([31_000, 301_000, 1_801_000, 7_201_000, null]);
    expect(delayAfter(0, SCHEDULE, () => 0)).to.equal(24_000);
    expect(delayAfter(0, SCHEDULE, () => 1)).to.equal(36_000);
    expect(
      delayAfter(9, SCHEDULE, () => 0.5),
      'the last pause is repeated',
    ).to.equal(28_800_000);
  });

  it('reset failures on success; the last attempt trips the webhook after enough failures in a row', () => {
    expect(judge({ attempt: 2, success: true, failures: 4 }, SCHEDULE, plain)).to.deep.equal({
      failures: 0,
      nextRetryAt: null,
      trips: false,
    });
    expect(judge({ attempt: 4, success: false, failures: 3 }, SCHEDULE, plain)).to.include({
      failures: 4,
      trips: false,
    });
    expect(judge({ attempt: 4, success: false, failures: 4 }, SCHEDULE, plain)).to.include({
      failures: 5,
      trips: true,
    });
    expect(judge({ attempt: 0, success: false, failures: 90 }, SCHEDULE, plain)).to.include({ trips: false });
  });

  it('never exceed the configured number, and each message ends, whatever the receiver returns', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.integer({ min: 0, max: 3_600_000 }), { minLength: 1, maxLength: 6 }),
        fc.array(fc.boolean(), { minLength: 25, maxLength: 25 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (attempts, delaysMs, answers, random) => {
          let failures = 0;
          let made = 0;
          for (let attempt = 0; ; attempt++) {
            made++;
            const success = answers[attempt] ?? false;
            const verdict = judge(
              { attempt, success, failures },
              { attempts, delaysMs },
              { now: 0, random: () => random },
            );
            expect(verdict.failures).to.equal(success ? 0 : failures + 1);
            failures = verdict.failures;
            if (verdict.nextRetryAt === null) {
              expect(success || made === attempts).to.equal(true);
              expect(verdict.trips).to.equal(!success && isOpen(failures, { attempts }));
              break;
            }
            const base = delaysMs[Math.min(attempt, delaysMs.length - 1)] ?? 0;
            expect(verdict.nextRetryAt).to.be.within(Math.floor(base * 0.8), Math.ceil(base * 1.2));
          }
          expect(made).to.be.at.most(attempts);
        },
      ),
    );
  });
});
