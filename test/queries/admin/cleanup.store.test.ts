/** What a cleanup finds: rows that are old enough, of one workspace, and no run that goes on. */
import { expect } from 'chai';
import { activitiesProjection } from '../../../projections/monitoring/activities.ts';
import { auditProjection } from '../../../projections/monitoring/audit.ts';
import { notificationsProjection } from '../../../projections/monitoring/notifications.ts';
import { searchProjection } from '../../../projections/monitoring/search.ts';
import { pipelinesProjection } from '../../../projections/pipelines/pipelines.ts';
import { tokensProjection } from '../../../projections/tokens/reports.ts';
import { countExpired, expiredEntries, expiredReports, expiredRows } from '../../../queries/admin/cleanup.ts';
import { notificationRaised } from '../../../shared/events/monitoring/notifications.ts';
import { pipelineRunCompleted, pipelineRunStarted } from '../../../shared/events/pipelines/runs.ts';
import { tokensReported } from '../../../shared/events/tokens/reports.ts';
import { sample } from '../../support/kit.ts';
import { readModels, secondsOf, type Told } from '../../support/rows.ts';
import { tokenReport } from '../../support/tokens.ts';

const LIMIT = 100;

const started = (runId: number): Told =>
  sample(pipelineRunStarted, {
    run_id: runId,
    pipeline_id: 3,
    pipeline_name: 'Survey',
    steps: [{ template_id: 1, template_name: 'one', on_failure: 'stop' }],
  });
const report = (id: string): Told => tokensReported.draft({ page: null, reports: [tokenReport(id)] });

const raised: Told = sample(notificationRaised, { recipient: 'ada', type: 'mention', title: 't', message: 'm' });
const completed = (runId: number): Told =>
  pipelineRunCompleted.draft({ run_id: runId, pipeline_id: 3, pipeline_name: 'Survey' });

describe('cleanup queries', () => {
  /** Events from here on are not old; Unix seconds. */
  let cutoff: number;
  const models = readModels([
    activitiesProjection,
    auditProjection,
    notificationsProjection,
    pipelinesProjection,
    searchProjection,
    tokensProjection,
  ]);
  before(async () => {
    const old: Told[] = [started(1), started(2), completed(2), report('old'), raised];
    const elsewhere = [started(3), completed(3), report('other'), raised].map((one): Told => {
      const [draft] = [one].flat() as [Exclude<Told, readonly unknown[]>];
      return [draft, { workspace: 2 }];
    });
    cutoff = secondsOf(old.length + elsewhere.length + 1);
    await models.tell(...old, ...elsewhere, started(4), completed(4), report('new'), raised);
  });

  it('do not treat active runs as old, whenever they started', async () => {
    const { reads } = models;
    expect((await expiredRows(reads, 1, 'pipeline_runs', cutoff, LIMIT)).ids).to.deep.equal([2]);
    expect(await countExpired(reads, 1, 'pipeline_runs', cutoff)).to.equal(1);
    expect((await expiredRows(reads, 1, 'pipeline_runs', cutoff + 1_000, LIMIT)).ids).to.deep.equal([2, 4]);
  });

  it('return rows of one workspace that are older than the cutoff', async () => {
    const { reads } = models;
    // Notifications have the numbers of their events.
    expect((await expiredRows(reads, 1, 'notifications', cutoff, LIMIT)).ids).to.deep.equal([5]);
    expect((await expiredRows(reads, 2, 'notifications', cutoff, LIMIT)).ids).to.deep.equal([9]);
    expect((await expiredRows(reads, 2, 'pipeline_runs', cutoff, LIMIT)).ids).to.deep.equal([3]);
    expect((await expiredReports(reads, 1, cutoff, LIMIT)).ids).to.deep.equal(['old']);
    expect((await expiredReports(reads, 2, cutoff, LIMIT)).ids).to.deep.equal(['other']);
    // The beginning of a run is an activity: the first two events of this workspace, and the sixth, of the other one.
    expect((await expiredRows(reads, 1, 'activities', cutoff, LIMIT)).ids)
      .to.include.members([1, 2])
      .and.not.include(6);
    expect((await expiredRows(reads, 2, 'activities', cutoff, LIMIT)).ids)
      .to.include(6)
      .and.not.include(1);
    for (const table of ['notifications', 'token_usage', 'audit_log', 'activities'] as const)
      expect(await countExpired(reads, 3, table, cutoff), table).to.equal(0);
    expect((await expiredEntries(reads, 3, cutoff, LIMIT)).ids).to.deep.equal([]);
  });
});
