import { expect } from 'chai';
import { cronProblem, dueMinutes, isFrequent, minuteOf, nextDue } from '../../shared/cron.ts';

const at = (text: string) => Date.parse(text) / 1_000;
const due = (cron: string, after: string, until: string, zone = 'UTC') =>
  dueMinutes(cron, zone, at(after), at(until)).map((one) => new Date(one * 1_000).toISOString().slice(0, 16));

describe('cron schedules', () => {
  it('have five fields, each within its range', () => {
    const valid = '* * * * *; */15 9-17 * * MON-FRI; 0 0 1,15 1-6 *; 0 0 29 2 *;  0  9 * * 7 ; 5/20 * L * *';
    for (const cron of valid.split('; ')) expect(cronProblem(cron), cron).to.equal(undefined);
    const invalid = `; * * * *; 0 * * * * *; @daily; 60 * * * *; * 24 * * *; * * 0 * *; * * * 13 *; * * * * 8;
      H * * * *; 0 1,H * * *; a b c d e; */0 * * * *; 10-5 * * * *; 0 0 31 2 *; ${'1,'.repeat(120)}1 * * * *`;
    for (const cron of invalid.split(/;\s+/)) expect(cronProblem(cron), cron).to.be.a('string');
    expect(cronProblem('0 9 * *')).to.match(/^must have 5 fields .* it has 4$/);
  });

  it('are due after the start and up to the end of a range', () => {
    expect(due('*/5 * * * *', '2026-01-01T00:00:00Z', '2026-01-01T00:10:00Z')).to.deep.equal([
      '2026-01-01T00:05',
      '2026-01-01T00:10',
    ]);
    expect(due('*/5 * * * *', '2026-01-01T00:10:00Z', '2026-01-01T00:14:59Z')).to.deep.equal([]);
    expect(due('0 9 * * *', '2026-01-01T08:59:30Z', '2026-01-01T09:00:00Z')).to.deep.equal(['2026-01-01T09:00']);
  });

  it('are refused, and never due, if none of their months has such a day', () => {
    for (const cron of ['0 0 31 4,6 *', '0 0 31 APR,JUN ?', '0 0 31/5 9,11 *', '0 0 30,31 2 *']) {
      expect(cronProblem(cron), cron).to.be.a('string');
    }
    // A log may have one from before.
    expect(due('0 0 31 4,6 *', '2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z')).to.deep.equal([]);
    expect(nextDue('0 0 31 4,6 *', 'UTC', at('2026-01-01T00:00:00Z'))).to.equal(null);
    for (const cron of [
      '0 0 31 4,5 *',
      '0 0 31 4,6 1',
      '0 0 31,L 4,6 *',
      '0 0 31 4,6 1-7',
      '0 0 30 4,6 *',
      '0 0 29 2 *',
    ]) {
      expect(cronProblem(cron), cron).to.equal(undefined);
      expect(nextDue(cron, 'UTC', at('2026-01-01T00:00:00Z')), cron).to.be.a('number');
    }
  });

  it('return the same result for repeated and earlier requests', () => {
    const ask = (hour: number) => due('30 * * * *', `2026-01-01T0${hour}:00:00Z`, `2026-01-01T0${hour}:59:00Z`);
    const once = [1, 2, 3, 4].map(ask);
    expect(once).to.deep.equal([1, 2, 3, 4].map((hour) => [`2026-01-01T0${hour}:30`]));
    expect([4, 3, 2, 1].map(ask)).to.deep.equal([...once].reverse());
  });

  it('support day of month and month', () => {
    expect(due('0 0 15 6 *', '2026-01-01T00:00:00Z', '2027-12-31T00:00:00Z')).to.deep.equal([
      '2026-06-15T00:00',
      '2027-06-15T00:00',
    ]);
    expect(due('0 0 13 1 5', '2026-01-01T00:00:00Z', '2026-01-17T00:00:00Z'), 'either day').to.deep.equal([
      '2026-01-02T00:00',
      '2026-01-09T00:00',
      '2026-01-13T00:00',
      '2026-01-16T00:00',
    ]);
  });

  it('follow the time zone, even across clock changes', () => {
    const berlin = (cron: string, after: string, until: string) => due(cron, after, until, 'Europe/Berlin');
    expect(berlin('0 9 * * *', '2026-01-10T00:00:00Z', '2026-01-11T00:00:00Z')).to.deep.equal(['2026-01-10T08:00']);
    expect(berlin('0 9 * * *', '2026-07-10T00:00:00Z', '2026-07-11T00:00:00Z')).to.deep.equal(['2026-07-10T07:00']);
    expect(berlin('30 2 * * *', '2026-03-28T12:00:00Z', '2026-03-29T12:00:00Z'), 'skipped').to.have.length(1);
    expect(berlin('30 2 * * *', '2026-10-24T12:00:00Z', '2026-10-25T12:00:00Z'), 'twice').to.have.length(1);
  });

  it('may be due several times a day', () => {
    expect(['0 9 * * *', '30 9 1 * *'].map(isFrequent)).to.deep.equal([false, false]);
    expect(['0 9,17 * * *', '*/30 9 * * *', '* * * * *'].map(isFrequent)).to.deep.equal([true, true, true]);
  });

  it('work in whole minutes, rounded down', () => {
    expect([119, 120, 121].map(minuteOf)).to.deep.equal([60, 120, 120]);
  });
});
