/** How tasks came out, and whether they take longer since a change: exact at the edges of their windows. */
import { expect } from 'chai';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { taskOutcomes } from '../../../queries/tasks/outcomes.ts';
import { taskRegression } from '../../../queries/tasks/regression.ts';
import type { TaskData } from '../../../shared/events/tasks/tasks.ts';
import { allTasks } from '../../../shared/identity.ts';
import { DAY } from '../../../shared/time.ts';
import { readModels, secondsOf, type Told } from '../../support/rows.ts';
import { createdAs } from '../../support/tasks.ts';

/** Unix seconds; every task is created within the minute before. */
const NOW = secondsOf(1) + 60 * DAY;

let ids = 0;
const task = (fields: Partial<TaskData>, meta: object = {}): Told => [createdAs(++ids, fields), meta];
/** A task that was created `took` seconds before it was completed. */
const done = (completedAt: number, took: number, fields: Partial<TaskData> = {}, meta: object = {}): Told =>
  task({ status: 'done', completed_at: completedAt, ...fields }, { at: (completedAt - took) * 1_000, ...meta });

describe('task outcomes', () => {
  const models = readModels([tasksProjection, agentsProjection], () => [
    done(NOW - 10, 100, { outcome: 'success', assigned_to: 'ada', priority: 'high' }),
    done(NOW - 20, 200, { outcome: 'failed', assigned_to: 'ada', error_message: ' no disk\n', retry_count: 3 }),
    done(NOW - DAY, 300, { assigned_to: 'bob', error_message: 'no disk' }),
    done(NOW - DAY - 1, 400, { outcome: 'partial', error_message: 'odd', assigned_to: '' }),
    done(NOW - 30 * DAY, -5, { outcome: 'abandoned', error_message: '  ' }),
    // Not completed at any time: its last change counts.
    task({ status: 'done', outcome: 'success' }, { at: (NOW - 100) * 1_000 }),
    task({ status: 'failed', outcome: 'failed', completed_at: NOW - 5, error_message: 'no disk' }),
    done(NOW - 10, 1, { outcome: 'success' }, { workspace: 2 }),
  ]);
  const outcomes = (timeframe: string, workspace = 1) =>
    taskOutcomes(models.reads, allTasks(workspace), timeframe, NOW);

  it('cover all time', async () => {
    const all = await outcomes('all');
    expect(all.summary).to.deep.equal({
      total_done: 6,
      with_outcome: 5,
      by_outcome: { success: 2, failed: 1, partial: 1, abandoned: 1, unknown: 1 },
      avg_retry_count: 0.5,
      avg_time_to_resolution_seconds: 250,
      success_rate: 0.4,
    });
    expect(all.record_count).to.equal(6);
    expect(all.common_errors).to.deep.equal([
      { error_message: 'no disk', count: 2 },
      { error_message: 'odd', count: 1 },
    ]);
    expect(all.by_agent).to.deep.equal({
      ada: { success: 1, failed: 1, partial: 0, abandoned: 0, unknown: 0, total: 2, success_rate: 0.5 },
      bob: { success: 0, failed: 0, partial: 0, abandoned: 0, unknown: 1, total: 1, success_rate: 0 },
      unassigned: { success: 1, failed: 0, partial: 1, abandoned: 1, unknown: 0, total: 3, success_rate: 1 / 3 },
    });
    expect(Object.keys(all.by_priority)).to.have.members(['high', 'medium']);
    expect(all.by_priority.high).to.include({ success: 1, total: 1, success_rate: 1 });
  });

  it('cover a day, a week and a month, to the second', async () => {
    const totals = async (timeframe: string) => (await outcomes(timeframe)).summary.total_done;
    expect(await totals('day')).to.equal(4);
    expect(await totals('week')).to.equal(5);
    expect(await totals('month')).to.equal(6);
    expect(await outcomes('fortnight')).to.deep.equal({ ...(await outcomes('all')), timeframe: 'fortnight' });
  });

  it('are empty for a workspace without tasks', async () => {
    const none = await outcomes('all', 3);
    expect(none).to.deep.include({ by_agent: {}, by_priority: {}, common_errors: [], record_count: 0 });
    expect(none.summary).to.deep.include({ success_rate: 0, avg_retry_count: 0, avg_time_to_resolution_seconds: 0 });
  });
});

describe('tasks before and after a change', () => {
  const start = NOW - 1_000;
  const models = readModels([tasksProjection, agentsProjection], () => [
    // Twenty before: they took 1 to 20 seconds; the oldest is the first moment of a window as long as the one since.
    ...Array.from({ length: 20 }, (_, n) => done(start - 1 - n * 50, n + 1)),
    done(start - 1_001, 500, { retry_count: 1 }),
    done(start - 1_002, 9_000),
    done(start, 40, { outcome: 'failed' }),
    done(NOW, 60, { error_message: ' ' }),
    done(NOW, -1, { outcome: 'partial' }),
    done(NOW + 1, 1),
  ]);
  const regression = (lookback: number, from = start) =>
    taskRegression(models.reads, allTasks(1), { start: from, lookback }, NOW);

  it('have percentiles by nearest rank and intervention rates', async () => {
    const { windows, deltas, params } = await regression(604_800);
    expect(params).to.deep.equal({ beta_start: start, lookback_seconds: 604_800 });
    expect(windows.post).to.deep.equal({
      label: 'post',
      start,
      end: NOW + 1,
      sample_size: 2,
      latency_seconds: { p50: 40, p95: 60, avg: 50 },
      interventions: { count: 2, rate: 1 },
    });
    expect(windows.baseline).to.deep.equal({
      label: 'baseline',
      start: start - 1_001,
      end: start,
      sample_size: 21,
      latency_seconds: { p50: 11, p95: 20, avg: 710 / 21 },
      interventions: { count: 1, rate: 1 / 21 },
    });
    expect(deltas).to.deep.equal({ p95_latency_seconds: 40, intervention_rate: 1 - 1 / 21 });
  });

  it('cover no more than the maximum look-back, and at least a minute', async () => {
    expect((await regression(60)).windows.baseline).to.deep.include({ start: start - 60, sample_size: 2 });
    expect((await regression(604_800, NOW)).windows.baseline).to.deep.include({ start: NOW - 60, end: NOW });
    expect((await regression(604_800, 10)).windows.baseline.start).to.equal(0);
  });

  it('have no difference if there is nothing to compare', async () => {
    const { windows, deltas } = await taskRegression(models.reads, allTasks(7), { start, lookback: 60 }, NOW);
    expect(windows.post.latency_seconds).to.deep.equal({ p50: null, p95: null, avg: null });
    expect(deltas).to.deep.equal({ p95_latency_seconds: null, intervention_rate: 0 });
  });
});
