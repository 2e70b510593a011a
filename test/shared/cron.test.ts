import { expect } from 'chai';
import { cronProblem, isFrequent, latestDue, minuteOf, nextDue, planProblem } from '../../shared/cron.ts';
import { DAY } from '../../shared/time.ts';
import { runs } from '../support/runs.ts';

const at = (text: string) => Date.parse(text) / 1_000;
const shown = (one: number) => new Date(one * 1_000).toISOString().slice(0, 16);
/** The due times after `after`, up to `until`; each is also the latest one at its moment and until the next. */
function timesOf(cron: string, zone: string, after: number, until: number): readonly number[] {
  const times: number[] = [];
  for (let next = nextDue(cron, zone, after); next !== null && next <= until; next = nextDue(cron, zone, next)) {
    expect(latestDue(cron, zone, next), `${cron} ${zone} ${shown(next)}`).to.equal(next);
    if (times.length > 0) expect(latestDue(cron, zone, next - 1), `before ${shown(next)}`).to.equal(times.at(-1));
    times.push(next);
  }
  return times;
}
const due = (cron: string, after: string, until: string, zone = 'UTC') =>
  timesOf(cron, zone, at(after), at(until)).map(shown);

/** Minutes are multiples of 15, as are all clock changes: the oracle reads the clock every 15 minutes. */
const QUARTER = 15 * 60;
const ORACLE = ['0 0 * * *', '30 23 * * *', '15,45 1,2 * * *', '30 * * * *', '0 */3 * * 0,5', '30 0-4 1-7 3 6'];

/** What the clock of a zone shows, as seconds of a UTC date, by moment. */
function readings(zone: string, from: number, to: number): ReadonlyMap<number, number> {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' });
  const moments = Array.from({ length: (to - from) / QUARTER + 1 }, (_, nth) => from + nth * QUARTER);
  return new Map(moments.map((one) => [one, at(`${format.format(one * 1_000).replace(' ', 'T')}:00Z`)]));
}

/** One zone for each different sequence of clock changes, with a moment of the day before each. */
function zonesByChanges(from: number, to: number) {
  const groups = new Map<string, { readonly zone: string; readonly changes: readonly number[] }>();
  for (const zone of Intl.supportedValuesOf('timeZone')) {
    const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
    const offsets: string[] = [];
    for (let one = from; one < to; one += DAY) offsets.push(format.format(one * 1_000).split(' ')[1] ?? '');
    const changes = offsets.flatMap((offset, nth) => {
      const before = offsets[nth - 1];
      return before === undefined || before === offset ? [] : [from + nth * DAY];
    });
    if (changes.length > 0) groups.set(offsets.join(), { zone, changes });
  }
  return [...groups.values()];
}

/** The due moments after `from` by brute force over each quarter of an hour that a clock could show. */
function expectedTimes(cron: string, clock: ReadonlyMap<number, number>, from: number): readonly number[] {
  const [minutes = '', hours = '', days = '', months = '', weekdays = ''] = cron.split(' ');
  const fits = (field: string, value: number) =>
    field.split(',').some((part) => {
      const [, first = '', last = first, step = '1'] = /^(\*|\d+)(?:-(\d+))?(?:\/(\d+))?$/.exec(part) ?? [];
      return first === '*' ? value % Number(step) === 0 : Number(first) <= value && value <= Number(last);
    });
  function matches(reading: number): boolean {
    const date = new Date(reading * 1_000);
    const [inMonth, inWeek] = [fits(days, date.getUTCDate()), fits(weekdays, date.getUTCDay())];
    const dayFits = days === '*' || weekdays === '*' ? inMonth && inWeek : inMonth || inWeek;
    const timeFits = fits(minutes, date.getUTCMinutes()) && fits(hours, date.getUTCHours());
    return timeFits && dayFits && fits(months, date.getUTCMonth() + 1);
  }
  const moments = [...clock];
  if (hours.startsWith('*'))
    return moments.filter(([moment, reading]) => moment > from && matches(reading)).map(([moment]) => moment);
  const [, start = 0] = moments[0] ?? [];
  const end = Math.max(...clock.values());
  const due = new Set<number>();
  let nth = 0;
  for (let reading = start; reading <= end; reading += QUARTER) {
    while ((moments[nth]?.[1] ?? end) < reading) nth++;
    const [moment = 0] = moments[nth] ?? [];
    if (moment > from && matches(reading)) due.add(moment);
  }
  return [...due].sort((a, b) => a - b);
}

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
  });

  it('run at the first moment after a gap, and once when the clock goes back, unless the hour begins with *', () => {
    for (const [cron, zone, day, expected] of [
      ['30 2 * * *', 'America/New_York', '2026-03-08', ['2026-03-08T07:00', '2026-03-09T06:30']],
      ['30 1 * * *', 'America/New_York', '2026-11-01', ['2026-11-01T05:30', '2026-11-02T06:30']],
      ['0 0 * * *', 'America/Santiago', '2026-09-06', ['2026-09-06T04:00', '2026-09-07T03:00']],
      ['0 0 * * *', 'Africa/Cairo', '2026-04-23', ['2026-04-23T22:00', '2026-04-24T21:00']],
      ['30 23 * * *', 'America/Nuuk', '2026-03-28', ['2026-03-28T01:30', '2026-03-29T01:00', '2026-03-30T00:30']],
      ['30 2 * * *', 'Antarctica/Troll', '2026-10-25', ['2026-10-25T00:30', '2026-10-26T02:30']],
      ['15 2 * * *', 'Australia/Lord_Howe', '2026-10-03', ['2026-10-03T15:30', '2026-10-04T15:15']],
      ['*/20 2 * * *', 'America/New_York', '2026-03-08', ['2026-03-08T07:00', '2026-03-09T06:00']],
      [
        '30 */12,1-3 * * *',
        'America/New_York',
        '2026-03-08',
        ['2026-03-08T05:30', '2026-03-08T06:30', '2026-03-08T07:30'],
      ],
      ['30 */1 * * *', 'America/New_York', '2026-11-01', ['2026-11-01T04:30', '2026-11-01T05:30', '2026-11-01T06:30']],
    ] as const) {
      const until = shown(at(`${day}T00:00:00Z`) + 3 * DAY);
      const found = due(cron, `${day}T00:00:00Z`, `${until}:00Z`, zone).filter((one) => one >= expected[0]);
      expect(found.slice(0, expected.length), `${cron} ${zone}`).to.deep.equal(expected);
    }
  });

  it('are due when the clock shows them, in every zone and at every clock change of at least a year', function () {
    this.timeout(60_000);
    const begin = at('2025-12-20T00:00:00Z');
    const groups = zonesByChanges(begin, begin + runs(1, 2) * 365 * DAY);
    expect(groups.length).to.be.above(20);
    for (const { zone, changes } of groups) {
      for (const change of changes) {
        const [from, to] = [change - 2 * DAY, change + DAY];
        const clock = readings(zone, from - 2 * DAY, to);
        for (const cron of ORACLE) {
          const found = timesOf(cron, zone, from, to).map(shown);
          expect(found, `${cron} ${zone} ${shown(change)}`).to.deep.equal(expectedTimes(cron, clock, from).map(shown));
        }
      }
    }
  });

  it('cannot be planned in an unknown zone, and say so', () => {
    expect(planProblem('0 0 * * *', 'Europe/Berlin')).to.equal(undefined);
    expect(planProblem('0 0 * * *', 'Nowhere/Land')).to.match(/time zone Nowhere\/Land is unknown/);
    expect(planProblem('0 0 31 4,6 *', 'UTC')).to.match(/never comes/);
  });

  it('may be due several times a day', () => {
    expect(['0 9 * * *', '30 9 1 * *'].map(isFrequent)).to.deep.equal([false, false]);
    expect(['0 9,17 * * *', '*/30 9 * * *', '* * * * *'].map(isFrequent)).to.deep.equal([true, true, true]);
  });

  it('work in whole minutes, rounded down', () => {
    expect([119, 120, 121].map(minuteOf)).to.deep.equal([60, 120, 120]);
  });
});
