import { expect } from 'chai';
import { percentChange, percentOf, perDay, trendAlerts } from '../../../queries/agents/trends.ts';

const CALM = { activities: 0, errors: 0, tasks_completed: 0 };
type Counts = Partial<typeof CALM>;
const alerts = (before: Counts, now: Counts) =>
  trendAlerts({ ...CALM, ...before }, { ...CALM, ...now }).map(({ level, message }) => `${level}: ${message}`);

describe('agent trends', () => {
  it('show changes in percent of the previous period, with two decimals', () => {
    expect([percentChange(3, 4), percentChange(4, 3), percentChange(7, 0)]).to.deep.equal([33.33, -25, -100]);
    expect([percentChange(0, 0), percentChange(0, 9), percentChange(9, 9)]).to.deep.equal([0, 100, 0]);
    expect([percentOf(1, 3), percentOf(0, 0), percentOf(5, 5)]).to.deep.equal([33.33, 0, 100]);
    expect([perDay(10, 1), perDay(10, 24), perDay(10, 72)]).to.deep.equal([10, 10, 3.33]);
  });

  it('raise no alert if nothing happens', () => {
    expect(alerts({}, {})).to.deep.equal([]);
    expect(alerts({ activities: 5, errors: 1 }, {})).to.deep.equal([]);
  });

  it('report a spike if errors exceed one and a half times the previous number', () => {
    expect(alerts({ errors: 2 }, { errors: 3 })).to.deep.equal([]);
    expect(alerts({ errors: 3 }, { errors: 5 })).to.deep.equal([
      'warning: Errors increased by 67% over the previous period (3 → 5).',
    ]);
  });

  it('report more than three errors after none as a new pattern', () => {
    expect(alerts({}, { errors: 3 })).to.deep.equal([]);
    expect(alerts({}, { errors: 4 })).to.deep.equal([
      'warning: New error pattern: 4 errors in this period, none in the previous one.',
    ]);
  });

  it('report no throughput after some as a possible stall', () => {
    expect(alerts({ tasks_completed: 1 }, {})).to.deep.equal([
      'info: No tasks completed in this period, 1 task in the previous one: possible stall.',
    ]);
  });

  it('report a drop to less than half of a throughput above two', () => {
    expect(alerts({ tasks_completed: 2 }, { tasks_completed: 1 })).to.deep.equal([]);
    expect(alerts({ tasks_completed: 4 }, { tasks_completed: 2 })).to.deep.equal([]);
    expect(alerts({ tasks_completed: 3 }, { tasks_completed: 1 })).to.deep.equal([
      'info: Task throughput dropped by 67% from the previous period (3 → 1).',
    ]);
  });

  it('report less than a quarter of more than five activities as a possible stall', () => {
    expect(alerts({ activities: 5 }, { activities: 1 })).to.deep.equal([]);
    expect(alerts({ activities: 8 }, { activities: 2 })).to.deep.equal([]);
    expect(alerts({ activities: 6 }, {})).to.deep.equal([
      'warning: Activity dropped by 100% from the previous period (6 → 0): possible stall.',
    ]);
  });

  it('raise at most one alert per subject, errors first', () => {
    const levels = trendAlerts(
      { activities: 100, errors: 1, tasks_completed: 9 },
      { activities: 1, errors: 9, tasks_completed: 0 },
    ).map(({ level }) => level);
    expect(levels).to.deep.equal(['warning', 'info', 'warning']);
  });
});
