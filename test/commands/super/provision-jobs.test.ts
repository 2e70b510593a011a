/** Decisions about provisioning jobs, purely. */
import { expect } from 'chai';
import {
  decideJob,
  decideQueue,
  decideRun,
  MAX_OPEN_JOBS,
  type NewJob,
  planFor,
} from '../../../commands/super/provision-jobs.ts';
import { decideDefaultTenant, tenantDecider } from '../../../commands/super/tenants.ts';
import type { Actor } from '../../../shared/events/metadata.ts';
import {
  provisionJobApproved,
  provisionJobCancelled,
  provisionJobCompleted,
  provisionJobFailed,
  type provisionJobQueued,
  provisionJobRejected,
} from '../../../shared/events/super/provision-jobs.ts';
import { type Draft, givenFor, refusalOf, stateAfter } from '../../support/kit.ts';
import { tenantMade } from '../../support/tenants.ts';

const ann: Actor = { type: 'user', id: 1, name: 'ann' };
const bob: Actor = { type: 'user', id: 2, name: 'bob' };
const key: Actor = { type: 'api', id: 0, name: 'api' };
const NONE = { remove_linux_user: false, remove_state_dirs: false };

const newJob: NewJob = {
  job_type: 'bootstrap',
  dry_run: true,
  request: {},
  plan: planFor('bootstrap', { slug: 'acme', linux_user: 'acme' }, NONE),
  requested_by: ann,
  idempotency_key: null,
  reason: null,
};
const given = givenFor(tenantDecider, ...tenantMade);
const queued = (job: Partial<NewJob> = {}) => decideQueue(given().state, 5, { ...newJob, ...job })[0] as Draft;
const about = { tenant_id: 4, job_id: 5, job_type: 'bootstrap', dry_run: true } as const;
const by = (actor: Actor) => ({ ...about, by: actor, reason: null });
const types = (drafts: readonly { readonly type: string }[]) => drafts.map(({ type }) => type);
const statusOf = (decide: () => unknown) => refusalOf(decide).status;

describe('decisions about provisioning jobs', () => {
  it('queuing a job adds dry_run to its request', () => {
    expect(queued()).to.deep.include({ type: 'ProvisionJobQueued' });
    expect(queued().data).to.deep.include({ tenant_id: 4, job_id: 5, dry_run: true, request: { dry_run: true } });
    expect(queued({ dry_run: false, request: { more: 1 } }).data).to.deep.include({
      request: { more: 1, dry_run: false },
    });
    expect(statusOf(() => decideQueue(stateAfter(tenantDecider), 5, newJob))).to.equal(404);
    const house = stateAfter(tenantDecider, ...(decideDefaultTenant(tenantDecider.initial, ann) as Draft[]));
    expect(statusOf(() => decideQueue(house, 5, newJob))).to.equal(400);
  });

  it('the number of open jobs per tenant is limited; finished jobs do not count', () => {
    const jobs = Array.from({ length: MAX_OPEN_JOBS }, (_, at) => {
      const one = queued() as ReturnType<typeof provisionJobQueued.draft>;
      return { ...one, data: { ...one.data, job_id: at + 1 } };
    });
    given(...jobs)
      .when(decideQueue, 999, newJob)
      .thenRefuses(409);
    const ended = [
      provisionJobCancelled.draft({ ...by(ann), job_id: 1 }),
      provisionJobCompleted.draft({ ...about, job_id: 2, steps: 1, tenant_status: null }),
    ];
    for (const one of ended) expect(decideQueue(given(...jobs, one).state, 999, newJob)).to.have.length(1);
  });

  it('the state changes as the contract defines', () => {
    const into: Record<string, readonly Draft[]> = {
      queued: [queued()],
      approved: [queued(), provisionJobApproved.draft(by(bob))],
      rejected: [queued(), provisionJobRejected.draft(by(bob))],
      failed: [
        queued(),
        provisionJobApproved.draft(by(bob)),
        provisionJobFailed.draft({ ...about, error: 'e', tenant_status: 'error' }),
      ],
      cancelled: [queued(), provisionJobCancelled.draft(by(bob))],
      completed: [
        queued(),
        provisionJobApproved.draft(by(bob)),
        provisionJobCompleted.draft({ ...about, steps: 1, tenant_status: 'active' }),
      ],
    };
    const allowed: Record<string, readonly string[]> = {
      queued: ['approve', 'reject', 'cancel'],
      approved: ['reject', 'cancel', 'run'],
      rejected: ['approve', 'cancel'],
      failed: ['approve', 'reject', 'cancel'],
      cancelled: [],
      completed: [],
    };
    for (const [status, drafts] of Object.entries(into)) {
      const state = given(...drafts).state;
      for (const action of ['approve', 'reject', 'cancel', 'run'] as const) {
        const decide = () =>
          action === 'run' ? decideRun(state, 5, ann, 'host') : decideJob(state, 5, { action }, bob);
        if (allowed[status]?.includes(action)) expect(decide(), `${status} ${action}`).not.to.deep.equal([]);
        else expect(statusOf(decide), `${status} ${action}`).to.equal(400);
      }
    }
    given(queued())
      .when(decideJob, 5, { action: 'approve', reason: 'fine' }, bob)
      .then(provisionJobApproved.draft({ ...about, by: bob, reason: 'fine' }));
  });

  describe('runs', () => {
    const approved = (job: Partial<NewJob>, approver = bob) => {
      const one = queued(job);
      const { job_type = 'bootstrap', dry_run = true } = job;
      return given(one, provisionJobApproved.draft({ ...by(approver), job_type, dry_run })).state;
    };

    it('a dry run skips every step, and one person may request, approve and run it', () => {
      const events = decideRun(approved({}, ann), 5, ann, 'host');
      expect(types(events)).to.deep.equal([
        'ProvisionJobStarted',
        'ProvisionStepEnded',
        'ProvisionStepEnded',
        'ProvisionStepEnded',
        'ProvisionJobCompleted',
      ]);
      expect(events[0]?.data).to.deep.include({ by: ann, runner_host: 'host', tenant_status: null });
      for (const step of events.slice(1, 4)) expect(step.data).to.deep.include({ ok: true, skipped: true });
      expect(events.at(-1)?.data).to.deep.include({ steps: 3, tenant_status: 'active' });
    });

    it('a dry decommission does not change the tenant', () => {
      const events = decideRun(approved({ job_type: 'decommission' }), 5, ann, 'host');
      expect(events.at(-1)?.data).to.deep.include({ tenant_status: null });
    });

    it('a run requires a plan', () => {
      const refusal = refusalOf(() => decideRun(approved({ plan: [] }), 5, ann, 'host'));
      expect([refusal.status, refusal.message.split(':')[0]]).to.deep.equal([400, 'plan_json']);
    });

    it('a live run requires two people, compared by identity and not by name', () => {
      const run = (requestedBy: Actor, approver: Actor, runner: Actor) => () =>
        decideRun(approved({ dry_run: false, requested_by: requestedBy }, approver), 5, runner, 'host');
      for (const [requester, approver, runner] of [
        [ann, ann, bob],
        [ann, { ...ann, name: 'ann, renamed' }, bob],
        [ann, bob, bob],
      ] as const) {
        const { message } = refusalOf(run(requester, approver, runner));
        expect(message).to.include('two people').and.not.include('API key');
      }
      expect(types(run(ann, bob, ann)())).to.deep.equal(['ProvisionJobStarted', 'ProvisionJobFailed']);
      expect(types(run(bob, ann, bob)())).to.deep.equal(['ProvisionJobStarted', 'ProvisionJobFailed']);
    });

    it('a person with a session and the API key counts once', () => {
      const agent: Actor = { ...bob, type: 'agent' };
      for (const [requester, approver, runner] of [
        [key, ann, bob],
        [ann, key, ann],
        [ann, bob, key],
        [key, key, ann],
        [agent, ann, bob],
      ] as const) {
        const live = { dry_run: false, requested_by: requester };
        const { message } = refusalOf(() => decideRun(approved(live, approver), 5, runner, 'host'));
        expect(message).to.include('two people').and.include('signed in');
        const rehearsed = decideRun(approved({ requested_by: requester }, approver), 5, runner, 'host');
        expect(types(rehearsed)).to.include('ProvisionJobCompleted');
      }
    });

    it('a live run without a provisioner fails, and sets its tenant to error', () => {
      const [started, failed] = decideRun(approved({ dry_run: false }), 5, ann, 'host');
      expect(started?.data).to.deep.include({ tenant_status: 'provisioning' });
      expect(failed?.data).to.deep.include({ tenant_status: 'error' });
      expect(String(failed?.data.error)).to.include('no provisioner');
      const down = decideRun(approved({ dry_run: false, job_type: 'decommission' }), 5, ann, 'host');
      expect(down[0]?.data).to.deep.include({ tenant_status: 'decommissioning' });
    });
  });

  it('a decommission plan removes only what was requested', () => {
    const plan = (removes: Partial<typeof NONE>) =>
      planFor('decommission', { slug: 'acme', linux_user: 'acme' }, { ...NONE, ...removes }).map((step) => step.key);
    expect(plan({})).to.deep.equal(['stop-services']);
    expect(plan({ remove_linux_user: true })).to.deep.equal(['stop-services', 'remove-linux-user']);
    expect(plan({ remove_state_dirs: true })).to.deep.equal(['stop-services', 'remove-state-dirs']);
  });
});
