import { expect } from 'chai';
import { tenantsProjection } from '../../../projections/super/tenants.ts';
import {
  provisionJobApproved,
  provisionJobCancelled,
  provisionJobCompleted,
  provisionJobFailed,
  provisionJobQueued,
  provisionJobRejected,
  provisionJobStarted,
  provisionStepEnded,
} from '../../../shared/events/super/provision-jobs.ts';
import { type Draft, eventsOf, rowsAfter, sample } from '../../support/kit.ts';
import { tenantMade } from '../../support/tenants.ts';

const ann = { type: 'user', id: 1, name: 'ann' } as const;
const bob = { type: 'user', id: 2, name: 'bob' } as const;
const about = { tenant_id: 4, job_id: 5, job_type: 'bootstrap', dry_run: true } as const;
const step = { key: 'one', title: 'Step one', command: ['run', 'it'], requires_root: true, timeout_ms: 50 };
const queued = sample(provisionJobQueued, {
  ...about,
  request: { dry_run: true },
  plan: [step, { ...step, key: 'two', timeout_ms: null }],
  requested_by: ann,
  reason: 'a new customer',
});
const approved = provisionJobApproved.draft({ ...about, by: bob, reason: null });
const started = provisionJobStarted.draft({ ...about, by: ann, runner_host: 'host', tenant_status: 'provisioning' });
const ended = (key: string, skipped: boolean, ok = true) =>
  provisionStepEnded.draft({ ...about, key, title: key, ok, skipped });
const completed = provisionJobCompleted.draft({ ...about, steps: 2, tenant_status: 'active' });
const failed = provisionJobFailed.draft({ ...about, error: 'no provisioner', tenant_status: 'error' });

const rows = (...drafts: readonly Draft[]) => {
  const found = rowsAfter(tenantsProjection, eventsOf([...tenantMade, ...drafts]));
  return { tenant: found.tenants[0], job: found.provision_jobs[0], lines: found.provision_events };
};

describe('projection tenants', () => {
  it('shows a new tenant without a job', () => {
    expect(rows().tenant).to.deep.include({
      id: 4,
      slug: 'acme',
      status: 'pending',
      config: { colour: 'red' },
      created_by: 'ann',
      main_workspace: 9,
      latest_job_id: null,
    });
  });

  it('shows a job as requested, also as the latest of its tenant', () => {
    const { tenant, job, lines } = rows(queued);
    expect(job).to.deep.include({
      id: 5,
      tenant_id: 4,
      status: 'queued',
      dry_run: 1,
      requested_by: 'ann',
      approved_by: null,
      request_json: { dry_run: true },
      result_json: null,
      plan_json: [
        { key: 'one', title: 'Step one', command: ['run', 'it'], requires_root: true, timeout_ms: 50 },
        { key: 'two', title: 'Step one', command: ['run', 'it'], requires_root: true },
      ],
    });
    expect(tenant).to.deep.include({
      latest_job_id: 5,
      latest_job_status: 'queued',
      latest_job_created_at: 1_700_000_003,
    });
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include({ step_key: 'queued', level: 'info', data: '{"reason":"a new customer"}' });
  });

  it('updates status, result, lines and the tenant during a run', () => {
    const during = rows(queued, approved, started);
    expect(during.job).to.include({ status: 'running', started_at: 1_700_000_005, runner_host: 'host' });
    expect(during.tenant).to.include({ status: 'provisioning', latest_job_status: 'running' });
    const { tenant, job, lines } = rows(queued, approved, started, ended('one', true), ended('two', false), completed);
    expect(job).to.deep.include({
      status: 'completed',
      approved_by: 'bob',
      completed_at: 1_700_000_008,
      error_text: null,
      result_json: {
        dry_run: true,
        steps_executed: 1,
        steps: [
          { key: 'one', ok: true, skipped: true },
          { key: 'two', ok: true, skipped: false },
        ],
      },
    });
    expect(tenant).to.include({ status: 'active', latest_job_status: 'completed' });
    expect(lines.map(({ step_key }) => step_key)).to.deep.equal([
      'queued',
      'approval',
      'start',
      'one',
      'two',
      'finish',
    ]);
    expect(new Set(lines.map(({ id }) => id)).size).to.equal(lines.length);
  });

  it('a failed job keeps its error until it is approved again', () => {
    const { tenant, job, lines } = rows(queued, approved, started, failed);
    expect(job).to.include({ status: 'failed', error_text: 'no provisioner', completed_at: 1_700_000_006 });
    expect(tenant).to.include({ status: 'error', latest_job_status: 'failed' });
    expect(lines.at(-1)).to.include({ step_key: 'error', level: 'error', message: 'no provisioner' });
    const again = rows(queued, approved, started, failed, approved);
    expect(again.job).to.include({ status: 'approved', error_text: null, completed_at: null });
    // A decision about a job is none about the tenant.
    expect(again.tenant).to.include({ status: 'error' });
  });

  it('shows rejections and cancellations', () => {
    const rejected = provisionJobRejected.draft({ ...about, by: bob, reason: 'no' });
    expect(rows(queued, rejected).job).to.include({ status: 'rejected', completed_at: null });
    const cancelled = provisionJobCancelled.draft({ ...about, by: bob, reason: null });
    expect(rows(queued, cancelled).job).to.include({ status: 'cancelled', completed_at: 1_700_000_004 });
    expect(rows(queued, cancelled).lines.at(-1)).to.include({ step_key: 'cancel', level: 'warn' });
  });

  it('an older job does not hide the latest', () => {
    const newer = { ...queued, data: { ...queued.data, job_id: 6 } };
    expect(rows(queued, newer, approved).tenant).to.include({ latest_job_id: 6, latest_job_status: 'queued' });
  });
});
