import { expect } from 'chai';
import fc from 'fast-check';
import { tokensProjection } from '../../../projections/tokens/reports.ts';
import { ALL_TIME, type DaySums, FACET_UNITS } from '../../../projections/tokens/usage.ts';
import {
  type TokenReport,
  tokenPageFilled,
  tokenReportsPurged,
  tokensReported,
} from '../../../shared/events/tokens/reports.ts';
import { DAY_MS, startOf } from '../../../shared/time-buckets.ts';
import { eventsOf, rowsAfter, timeOf } from '../../support/kit.ts';
import { runs } from '../../support/runs.ts';
import { farFromUtc } from '../../support/time-zone.ts';
import { tokenReport, usedBy } from '../../support/tokens.ts';

const reported = (page: number | null, ...reports: TokenReport[]) => tokensReported.draft({ page, reports });

describe('projection: tokens', () => {
  farFromUtc();

  it('has a row for each report', () => {
    const events = eventsOf([
      reported(null, tokenReport('a'), tokenReport('b', { agent_id: null, task_id: 3, duration: 1.5, used_at: null })),
    ]);
    const { reports } = rowsAfter(tokensProjection, events);
    const row = {
      workspace_id: 1,
      at: timeOf(1),
      model: 'm',
      session_id: 'ada:cli',
      agent_name: 'ada',
      input_tokens: 10,
      output_tokens: 5,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      cost: 0.000000001,
      price: 'built-in',
      operation: 'chat_completion',
      position: 1,
    };
    expect(reports).to.deep.equal([
      { ...row, id: 'a', place: 0, agent_id: 7, task_id: null, duration: null, used_at: null },
      { ...row, id: 'b', place: 1, agent_id: null, task_id: 3, duration: 1.5, used_at: null },
    ]);
  });

  it('sums the reports of a batch per facet and bucket, once each', () => {
    const batch = [tokenReport('a'), tokenReport('b', { task_id: 3 }), tokenReport('c', { model: 'n' })];
    const { usage } = rowsAfter(
      tokensProjection,
      eventsOf([reported(null, ...batch), reported(null, tokenReport('d'))]),
    );
    const sums = usage.map(({ facet, unit, subject, model, requests, input_tokens, cost }) =>
      [facet, unit, subject, model, requests, input_tokens, cost].join(' '),
    );
    expect(sums.sort()).to.deep.equal(
      [
        ...['hour', 'day', 'dekad', 'month', 'year'].map((unit) => `agent ${unit}  m 3 30 3`),
        ...['hour', 'day', 'dekad', 'month', 'year'].map((unit) => `agent ${unit}  n 1 10 1`),
        ...['shift', 'day', 'pentad', 'dekad', 'all'].map((unit) => `session ${unit} ada:cli  4 40 4`),
        ...['day', 'dekad', 'all'].map((unit) => `task ${unit} 3 m 1 10 1`),
        ...['hour', 'day', 'dekad', 'all'].map((unit) => `model ${unit}  m 3 30 3`),
        ...['hour', 'day', 'dekad', 'all'].map((unit) => `model ${unit}  n 1 10 1`),
      ].sort(),
    );
    const starts = Object.fromEntries(usage.map(({ unit, start }) => [unit, new Date(start).toISOString()]));
    expect(starts).to.deep.equal({
      hour: '2023-11-14T22:00:00.000Z',
      shift: '2023-11-14T16:00:00.000Z',
      day: '2023-11-14T00:00:00.000Z',
      pentad: '2023-11-11T00:00:00.000Z',
      dekad: '2023-11-11T00:00:00.000Z',
      month: '2023-11-01T00:00:00.000Z',
      year: '2023-01-01T00:00:00.000Z',
      all: '1970-01-01T00:00:00.000Z',
    });
  });

  it('stores the UTC days of a month in one row per agent', () => {
    const told = (at: string, id: string) => {
      const [event] = eventsOf([reported(null, tokenReport(id))], { at: Date.parse(at) });
      return event as NonNullable<typeof event>;
    };
    const events = ['2023-11-30T23:59:59.999Z', '2023-11-30T00:00:00Z', '2023-12-01T00:00:00Z'].map((at, n) => {
      const event = told(at, `r${n}`);
      return { ...event, position: n + 1, meta: { ...event.meta, number: n + 1 } };
    });
    const { days } = rowsAfter(tokensProjection, events);
    expect(days.map(({ month, days }) => [new Date(month).toISOString(), days])).to.deep.equal([
      ['2023-11-01T00:00:00.000Z', { 30: [2, 30, 2] }],
      ['2023-12-01T00:00:00.000Z', { 1: [1, 15, 1] }],
    ]);
  });

  it('counts a late report when its tokens were used, also beside others of its batch', () => {
    const used = timeOf(1) - 3 * DAY_MS;
    const late = tokenReport('late', { used_at: used, cost: 2 / 1e9 });
    const { reports, usage, days } = rowsAfter(tokensProjection, eventsOf([reported(null, tokenReport('now'), late)]));
    expect(reports.map(({ id, at, used_at }) => [id, at, used_at])).to.deep.equal([
      ['now', timeOf(1), null],
      ['late', used, used],
    ]);
    expect(days.map(({ month, days }) => [new Date(month).toISOString(), days])).to.deep.equal([
      ['2023-11-01T00:00:00.000Z', { 11: [1, 15, 2], 14: [1, 15, 1] }],
    ]);
    const of = (facet: string, unit: string) =>
      usage
        .filter((row) => row.facet === facet && row.unit === unit)
        .map(({ start, requests, cost, last_at }) => [start, requests, cost, last_at])
        .sort();
    const hour = (at: number) => startOf('hour', at);
    expect(of('agent', 'hour')).to.deep.equal([
      [hour(used), 1, 2, used],
      [hour(timeOf(1)), 1, 1, timeOf(1)],
    ]);
    expect(of('session', ALL_TIME)).to.deep.equal([[0, 2, 3, timeOf(1)]]);
  });

  it('groups by agent id, whatever the name; names without an agent stand for themselves', () => {
    const events = eventsOf([
      reported(null, tokenReport('a'), tokenReport('b', { agent_name: 'ada2' })),
      reported(null, tokenReport('c', { agent_id: null }), tokenReport('d', { agent_id: null, agent_name: 'bob' })),
    ]);
    const { usage, agents } = rowsAfter(tokensProjection, events);
    const hours = usage.filter(({ facet, unit }) => facet === 'agent' && unit === 'hour');
    expect(hours.map((row) => [row.agent_id, row.agent_name, row.requests])).to.deep.equal([
      [7, '', 2],
      [0, 'ada', 1],
      [0, 'bob', 1],
    ]);
    expect(agents).to.deep.equal([{ workspace_id: 1, agent_id: 7, name: 'ada2', position: 1 }]);
  });

  it('stores the open page of the ledger', () => {
    const page = (...drafts: Parameters<typeof eventsOf>[0]) =>
      rowsAfter(tokensProjection, eventsOf(drafts)).ledgers.map((row) => row.page);
    expect(page(reported(null, tokenReport('a')))).to.deep.equal([]);
    expect(page(reported(1, tokenReport('a')))).to.deep.equal([1]);
    const filled = tokenPageFilled.draft({ page: 1 });
    expect(page(reported(1, tokenReport('a')), filled)).to.deep.equal([2]);
    expect(page(reported(1, tokenReport('a')), filled, reported(2, tokenReport('b')))).to.deep.equal([2]);
  });

  it('is the same after removal of the oldest reports as if they had never existed', () => {
    const HOUR = 3_600_000;
    const some = fc.record({
      model: fc.constantFrom('m', 'n'),
      session_id: fc.constantFrom('ada:cli', 'bob:cli'),
      agent_id: fc.constantFrom(7, 8, null),
      agent_name: fc.constantFrom('ada', 'bob'),
      task_id: fc.constantFrom(3, null),
      input_tokens: fc.nat(1_000),
      cache_read_tokens: fc.nat(1_000),
      price: fc.constantFrom('own' as const, 'default' as const),
      hours: fc.nat(40),
    });
    fc.assert(
      fc.property(fc.array(some, { minLength: 1, maxLength: 12 }), fc.nat(12), (all, old) => {
        const told = all
          .sort((a, b) => a.hours - b.hours)
          .map(({ hours, ...fields }, n) => ({ at: timeOf(0) + hours * HOUR, one: tokenReport(`r${n}`, fields) }));
        const gone = told.slice(0, old);
        const purged = tokenReportsPurged.draft({
          ids: gone.map(({ one }) => one.id),
          used: gone.map(({ at, one }) => usedBy(at, one)),
        });
        const events = (some: typeof told, ...more: Parameters<typeof eventsOf>[0]) =>
          eventsOf([...some.map(({ one }) => reported(null, one)), ...more]).map((event, n) => ({
            ...event,
            meta: { ...event.meta, at: some[n]?.at ?? event.meta.at },
          }));
        const [purgedRows, without] = [
          rowsAfter(tokensProjection, events(told, purged)),
          rowsAfter(tokensProjection, events(told.slice(old))),
        ];
        const plain = (rows: readonly { readonly position: number }[]) =>
          rows.map(({ position: _, ...row }) => JSON.stringify(row)).sort();
        expect(plain(purgedRows.usage)).to.deep.equal(plain(without.usage));
        expect(plain(purgedRows.days)).to.deep.equal(plain(without.days));
        expect(plain(purgedRows.reports)).to.deep.equal(plain(without.reports));
      }),
      { numRuns: runs(30, 100) },
    );
  });

  it('has buckets that add up to the sum of the reports in every facet', () => {
    const some = fc.record({
      session_id: fc.constantFrom('ada:cli', 'bob', 'x'.repeat(512)),
      model: fc.constantFrom('m', 'n', '"'),
      agent_id: fc.constantFrom(7, 8, null),
      agent_name: fc.constantFrom('ada', 'bob', '7'),
      input_tokens: fc.nat(1_000_000),
      output_tokens: fc.nat(1_000_000),
      cache_read_tokens: fc.nat(1_000_000),
      cache_write_tokens: fc.nat(1_000_000),
      price: fc.constantFrom('own' as const, 'default' as const),
      task_id: fc.constantFrom(3, 4, null),
      cost: fc.nat(5_000_000).map((nano) => nano / 1e9),
    });
    const batches = fc.array(fc.array(some, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(batches, (all) => {
        let ids = 0;
        const drafts = all.map((batch) => reported(null, ...batch.map((fields) => tokenReport(`r${ids++}`, fields))));
        const { usage, days } = rowsAfter(tokensProjection, eventsOf(drafts));
        const expected = (reports: typeof all) => {
          const flat = reports.flat();
          const sum = (of: (one: (typeof flat)[number]) => number) => flat.reduce((total, one) => total + of(one), 0);
          const cost = (some: typeof flat) => some.reduce((total, one) => total + Math.round(one.cost * 1e9), 0);
          return [
            flat.length,
            sum((one) => one.input_tokens + one.cache_read_tokens + one.cache_write_tokens),
            cost(flat),
            cost(flat.filter(({ price }) => price === 'default')),
          ];
        };
        for (const facet of ['agent', 'session', 'task', 'model'] as const) {
          const counted =
            facet === 'task' ? all.map((batch) => batch.filter(({ task_id: taskId }) => taskId !== null)) : all;
          const ofAllTime = facet === 'agent' ? [] : [ALL_TIME];
          for (const unit of [...FACET_UNITS[facet], ...ofAllTime]) {
            const rows = usage.filter((row) => row.facet === facet && row.unit === unit);
            const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((total, row) => total + of(row), 0);
            const sums = [
              sum((row) => row.requests),
              sum((row) => row.input_tokens),
              sum((row) => row.cost),
              sum((row) => row.estimated),
            ];
            expect(sums, `${facet} ${unit}`).to.deep.equal(expected(counted));
          }
        }
        const ofDays = days.flatMap((row) => Object.values(row.days as Readonly<Record<string, DaySums>>));
        const total = (place: 0 | 1 | 2) => ofDays.reduce((sum, one) => sum + one[place], 0);
        const output = all.flat().reduce((sum, one) => sum + one.output_tokens, 0);
        const [requests = 0, input = 0, cost = 0] = expected(all);
        expect([total(0), total(1), total(2)]).to.deep.equal([requests, input + output, cost]);
      }),
      { numRuns: runs(20, 50) },
    );
  });
});
