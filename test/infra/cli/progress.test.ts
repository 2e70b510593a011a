/** The time that a long command still takes, as its progress shows it. */
import { expect } from 'chai';
import { timeLeft } from '../../../infra/cli/progress.ts';

describe('time left', () => {
  it('is the time per position so far, times the positions that are left', () => {
    expect(timeLeft(10_000, { done: 500, rest: 1_500 })).to.equal(', about 30 s left');
    expect(timeLeft(10_000, { done: 500, rest: 5_951 })).to.equal(', about 2 min left');
    expect(timeLeft(60_000, { done: 1, rest: 90 })).to.equal(', about 90 min left');
  });

  it('is not shown before anything was read, at the end, or if the end is unknown', () => {
    expect(timeLeft(10_000, { done: 0, rest: 100 })).to.equal('');
    expect(timeLeft(10_000, { done: 100, rest: 0 })).to.equal('');
    expect(timeLeft(10_000, { done: 100, rest: -100 })).to.equal('');
  });
});
