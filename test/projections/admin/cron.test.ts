import { expect } from 'chai';
import { cronProjection, KEPT_RUNS } from '../../../projections/admin/cron.ts';
import { cronJobAdded, cronJobRemoved, cronRunEnded, cronRunStarted } from '../../../shared/events/admin/cron.ts';
import { type Draft, eventsOf, rowsAfter, timeOf } from '../../support/kit.ts';

const added = cronJobAdded.draft({ name: 'a', schedule: '* * * * *', command: 'purge_logs', enabled: true });
const started = (run: number) => cronRunStarted.draft({ name: 'a', run, due_at: null, previous_due_at: null });
const ended = (run: number, ok: boolean) =>
  cronRunEnded.draft({ name: 'a', run, ok, message: `said ${run}`, duration_ms: 5 });
const rows = (...drafts: Draft[]) => rowsAfter(cronProjection, eventsOf([added, ...drafts]));

describe('projection: scheduled jobs', () => {
  it('shows the last run and its outcome', () => {
    expect(rows().cron_jobs[0]).to.include({ last_run: null, last_status: null });
    expect(rows(started(1)).cron_jobs[0]).to.include({ last_run: timeOf(2), last_status: 'running' });
    const [job] = rows(started(1), ended(1, false)).cron_jobs;
    expect(job).to.include({ last_status: 'error', last_error: 'said 1' });
    expect(rows(started(1), ended(1, false), started(2), ended(2, true)).cron_jobs[0]).to.include({ last_error: null });
  });

  it('shows that a run was late, once it has succeeded', () => {
    const late = cronRunStarted.draft({ name: 'a', run: 1, due_at: 60, previous_due_at: 0, late_by: 7_200 });
    expect(rows(late, ended(1, true)).cron_jobs[0]).to.include({ last_status: 'late', last_error: null });
    expect(rows(late, ended(1, true)).cron_runs[0]).to.include({ status: 'late', late_by: 7_200 });
    expect(rows(late, ended(1, false)).cron_jobs[0]).to.include({ last_status: 'error' });
    expect(rows(late, ended(1, true), started(2), ended(2, true)).cron_jobs[0]).to.include({ last_status: 'success' });
  });

  it('keeps a limited number of runs, and none after removal', () => {
    const many = Array.from({ length: KEPT_RUNS + 3 }, (_, n) => [started(n + 1), ended(n + 1, true)]).flat();
    const { cron_runs: runs } = rows(...many);
    expect(runs).to.have.length(KEPT_RUNS);
    expect(Math.min(...runs.map(({ run }) => run))).to.equal(4);
    const gone = rows(started(1), ended(1, true), cronJobRemoved.draft({ name: 'a' }));
    expect(gone).to.deep.equal({ cron_jobs: [], cron_runs: [] });
  });
});
