import { expect } from 'chai';
import fc from 'fast-check';
import {
  DAY_MS,
  firstFrom,
  HOUR_MS,
  spansOf,
  startOf,
  termsSince,
  UNITS,
  type Unit,
} from '../../shared/time-buckets.ts';

const ENDLESS = Number.POSITIVE_INFINITY;
const BEGIN = Date.UTC(2025, 10, 27);
/** Without those between a day and an hour, and between a dekad and a day. */
const PLAIN: readonly Unit[] = ['hour', 'day', 'dekad', 'month', 'year'];
const unitLists: readonly (readonly Unit[])[] = [
  ['hour'],
  ['hour', 'day'],
  PLAIN,
  ['shift', 'day', 'pentad', 'dekad'],
  UNITS,
  ['day', 'dekad'],
  ['day', 'month'],
  ['month', 'year'],
  ['month'],
];
/** Edges of hours, days and months among them. */
const moment = fc.oneof(
  fc.nat(100 * DAY_MS).map((ms) => BEGIN + ms),
  fc.nat(2_400).map((hours) => BEGIN + hours * HOUR_MS),
  fc.nat(100).map((days) => BEGIN + days * DAY_MS),
);

describe('windows of time buckets', () => {
  it('cover every moment once, with whole buckets', () => {
    fc.assert(
      fc.property(fc.constantFrom(...unitLists), moment, fc.option(moment, { nil: ENDLESS }), (units, from, until) => {
        const { buckets, rests } = spansOf(units, from, until);
        for (const { unit, from: start, until: end } of buckets) {
          expect(startOf(unit, start)).to.equal(start);
          if (end !== ENDLESS) expect(startOf(unit, end)).to.equal(end);
        }
        const all = [...buckets, ...rests].sort((a, b) => a.from - b.from);
        if (from >= until) {
          expect(all).to.deep.equal([]);
          return;
        }
        expect(all.every((span) => span.from < span.until)).to.equal(true);
        expect(all.map((span) => span.from)).to.deep.equal([from, ...all.slice(0, -1).map((span) => span.until)]);
        expect(all.at(-1)?.until).to.equal(until);
      }),
    );
  });

  it('add up to everything since a moment by additions and subtractions, from the nearest edges', () => {
    const ago = fc.oneof(fc.nat(400 * DAY_MS), fc.nat(2 * DAY_MS), fc.nat(2 * HOUR_MS));
    fc.assert(
      fc.property(fc.constantFrom(...unitLists), moment, ago, (units, from, age) => {
        const now = from + age;
        const terms = termsSince(units, from, now);
        for (const { unit, from: start, until: end } of terms) {
          expect(start).to.be.below(end);
          if (unit === null) continue;
          expect(startOf(unit, start)).to.equal(start);
          if (end !== ENDLESS) expect(startOf(unit, end)).to.equal(end);
        }
        const edges = terms.flatMap((one) => [one.from, one.until]).filter((at) => at !== ENDLESS);
        for (const at of [...edges, from].flatMap((edge) => [edge - 1, edge])) {
          const within = terms.filter((one) => one.from <= at && at < one.until);
          const times = within.reduce((sum, { sign }) => sum + sign, 0);
          expect(times, new Date(at).toISOString()).to.equal(at >= from ? 1 : 0);
        }
        // Single rows are those of at most half of the shortest bucket.
        const [finest = 'hour'] = units;
        const bucket = [startOf(finest, from), firstFrom(finest, from)] as const;
        for (const single of terms.filter(({ unit }) => unit === null))
          expect(Math.min(single.until, now) - single.from).to.be.at.most((bucket[1] - bucket[0]) / 2);
      }),
    );
  });

  it('since a moment use the side with fewer buckets', () => {
    const now = Date.UTC(2026, 10, 22, 16, 31);
    const shown = (since: number, units = PLAIN) =>
      termsSince(units, since, now).map(
        ({ unit, from, sign }) => `${sign} ${unit} ${new Date(from).toISOString().slice(2, 16)}`,
      );
    const week = ['1 null 26-11-15T16:31', '1 hour 26-11-15T17:00', '1 day 26-11-16T00:00', '1 dekad 26-11-21T00:00'];
    expect(shown(Date.UTC(2026, 10, 15, 16, 31))).to.deep.equal(week);
    expect(shown(Date.UTC(2025, 10, 22, 16, 29))).to.deep.equal([
      '-1 null 25-11-22T16:00',
      '1 hour 25-11-22T16:00',
      '-1 day 25-11-21T00:00',
      '1 dekad 25-11-21T00:00',
      '1 month 25-12-01T00:00',
      '1 year 26-01-01T00:00',
    ]);
    const ofSessions: readonly Unit[] = ['shift', 'day', 'pentad', 'dekad'];
    expect(shown(Date.UTC(2026, 10, 15, 16, 31), ofSessions)).to.deep.equal([
      '-1 null 26-11-15T16:00',
      '1 shift 26-11-15T16:00',
      '1 pentad 26-11-16T00:00',
    ]);
    expect(shown(Date.UTC(2026, 10, 8, 7, 0), ofSessions)).to.deep.equal([
      '1 null 26-11-08T07:00',
      '1 shift 26-11-08T08:00',
      '1 day 26-11-09T00:00',
      '1 dekad 26-11-11T00:00',
    ]);
    expect(shown(now - 60_000)).to.deep.equal(['1 null 26-11-22T16:30', '1 hour 26-11-22T17:00']);
  });

  it('use the longest buckets that fit, and single rows only for parts of the shortest', () => {
    const from = Date.UTC(2026, 0, 30, 22, 30);
    const until = Date.UTC(2026, 2, 2, 1, 15);
    const { buckets, rests } = spansOf(PLAIN, from, until);
    expect(rests).to.deep.equal([
      { from, until: Date.UTC(2026, 0, 30, 23) },
      { from: Date.UTC(2026, 2, 2, 1), until },
    ]);
    const shown = buckets.map((one) => `${one.unit} ${new Date(one.from).toISOString().slice(5, 13)}`).sort();
    expect(shown).to.deep.equal(['day 01-31T00', 'day 03-01T00', 'hour 01-30T23', 'hour 03-02T00', 'month 02-01T00']);
  });

  it('have ten-day periods that start on the 1st, 11th and 21st, and end with their month', () => {
    const from = Date.UTC(2026, 1, 9, 12);
    const { buckets } = spansOf(PLAIN, from, Date.UTC(2026, 4, 23));
    const shown = buckets.map(
      (one) => `${one.unit} ${[one.from, one.until].map((at) => new Date(at).toISOString().slice(5, 10)).join(' ')}`,
    );
    expect(shown.sort()).to.deep.equal([
      'day 02-10 02-11',
      'day 05-21 05-23',
      'dekad 02-11 03-01',
      'dekad 05-01 05-21',
      'hour 02-09 02-10',
      'month 03-01 05-01',
    ]);
    expect(startOf('dekad', Date.UTC(2026, 4, 31, 23))).to.equal(Date.UTC(2026, 4, 21));
  });

  it('have two five-day periods per ten-day period, and three shifts per day', () => {
    const starts = (unit: Unit, from: number, until: number) => {
      const found: string[] = [];
      for (let at = firstFrom(unit, from); at < until; at = firstFrom(unit, at + 1)) {
        expect(startOf(unit, at)).to.equal(at);
        expect(startOf(unit, firstFrom(unit, at + 1) - 1)).to.equal(at);
        found.push(new Date(at).toISOString().slice(5, 13));
      }
      return found;
    };
    const pentads = (month: number) => starts('pentad', Date.UTC(2026, month), Date.UTC(2026, month + 1));
    expect(pentads(0)).to.deep.equal(['01', '06', '11', '16', '21', '26'].map((day) => `01-${day}T00`));
    expect(pentads(1)).to.deep.equal(['01', '06', '11', '16', '21', '26'].map((day) => `02-${day}T00`));
    expect(starts('shift', Date.UTC(2026, 1, 28, 1), Date.UTC(2026, 2, 1, 9))).to.deep.equal([
      '02-28T08',
      '02-28T16',
      '03-01T00',
      '03-01T08',
    ]);
  });
});
