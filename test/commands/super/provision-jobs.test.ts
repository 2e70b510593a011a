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
  jobType: 'bootstrap',
  dryRun: true,
  request: {},
  plan: planFor('bootstrap', { slug: 'acme', linuxUser: 'acme' }, NONE),
  requestedBy: ann,
  idempotencyKey: null,
  reason: null,
};
const given = givenFor(tenantDecider, ...tenantMade);
const queued = (job: Partial<NewJob> = {}) => decideQueue(given().state, 5, { ...newJob, ...job })[0] as Draft;
const about = { tenantId: 4, jobId: 5, jobType: 'bootstrap', dryRun: true } as const;
const by = (actor: Actor) => ({ ...about, by: actor, reason: null });
const types = (drafts: readonly { readonly type: string }[]) => drafts.map(({ type }) => type);
const statusOf = (decide: () => unknown) => refusalOf(decide).status;

describe('decisions about provisioning jobs', () => {
  it('a job is queued with its dry_run in the request', () => {
    expect(queued()).to.deep.include({ type: 'ProvisionJobQueued' });
    expect(queued().data).to.deep.include({ tenantId: 4, jobId: 5, dryRun: true, request: { dry_run: true } });
    expect(queued({ dryRun: false, request: { more: 1 } }).data).to.deep.include({
      request: { more: 1, dry_run: false },
    });
    expect(statusOf(() => decideQueue(stateAfter(tenantDecider), 5, newJob))).to.equal(404);
    const house = stateAfter(tenantDecider, ...(decideDefaultTenant(tenantDecider.initial, ann) as Draft[]));
    expect(statusOf(() => decideQueue(house, 5, newJob))).to.equal(400);
  });

  it('a tenant has a bounded number of open jobs; those that have ended do not count', () => {
    const jobs = Array.from({ length: MAX_OPEN_JOBS }, (_, at) => {
      const one = queued() as ReturnType<typeof provisionJobQueued.draft>;
      return { ...one, data: { ...one.data, jobId: at + 1 } };
    });
    given(...jobs)
      .when(decideQueue, 999, newJob)
      .thenRefuses(409);
    const ended = [
      provisionJobCancelled.draft({ ...by(ann), jobId: 1 }),
      provisionJobCompleted.draft({ ...about, jobId: 2, steps: 1, tenantStatus: null }),
    ];
    for (const one of ended) expect(decideQueue(given(...jobs, one).state, 999, newJob)).to.have.length(1);
  });

  it('goes from state to state as the contract says', () => {
    const into: Record<string, readonly Draft[]> = {
      queued: [queued()],
      approved: [queued(), provisionJobApproved.draft(by(bob))],
      rejected: [queued(), provisionJobRejected.draft(by(bob))],
      failed: [
        queued(),
        provisionJobApproved.draft(by(bob)),
        provisionJobFailed.draft({ ...about, error: 'e', tenantStatus: 'error' }),
      ],
      cancelled: [queued(), provisionJobCancelled.draft(by(bob))],
      completed: [
        queued(),
        provisionJobApproved.draft(by(bob)),
        provisionJobCompleted.draft({ ...about, steps: 1, tenantStatus: 'active' }),
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
      const { jobType = 'bootstrap', dryRun = true } = job;
      return given(one, provisionJobApproved.draft({ ...by(approver), jobType, dryRun })).state;
    };

    it('a dry run skips every step; one person may request, approve and run it', () => {
      const events = decideRun(approved({}, ann), 5, ann, 'host');
      expect(types(events)).to.deep.equal([
        'ProvisionJobStarted',
        'ProvisionStepEnded',
        'ProvisionStepEnded',
        'ProvisionStepEnded',
        'ProvisionJobCompleted',
      ]);
      expect(events[0]?.data).to.deep.include({ by: ann, runnerHost: 'host', tenantStatus: null });
      for (const step of events.slice(1, 4)) expect(step.data).to.deep.include({ ok: true, skipped: true });
      expect(events.at(-1)?.data).to.deep.include({ steps: 3, tenantStatus: 'active' });
    });

    it('a dry decommission leaves the tenant as it is', () => {
      const events = decideRun(approved({ jobType: 'decommission' }), 5, ann, 'host');
      expect(events.at(-1)?.data).to.deep.include({ tenantStatus: null });
    });

    it('needs a plan', () => {
      const refusal = refusalOf(() => decideRun(approved({ plan: [] }), 5, ann, 'host'));
      expect([refusal.status, refusal.message.split(':')[0]]).to.deep.equal([400, 'plan_json']);
    });

    it('a live run needs two people, by who they are and not by their names', () => {
      const run = (requestedBy: Actor, approver: Actor, runner: Actor) => () =>
        decideRun(approved({ dryRun: false, requestedBy }, approver), 5, runner, 'host');
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

    it('a person who signs in and also has the API key counts once', () => {
      const agent: Actor = { ...bob, type: 'agent' };
      for (const [requester, approver, runner] of [
        [key, ann, bob],
        [ann, key, ann],
        [ann, bob, key],
        [key, key, ann],
        [agent, ann, bob],
      ] as const) {
        const live = { dryRun: false, requestedBy: requester };
        const { message } = refusalOf(() => decideRun(approved(live, approver), 5, runner, 'host'));
        expect(message).to.include('two people').and.include('signed in');
        const rehearsed = decideRun(approved({ requestedBy: requester }, approver), 5, runner, 'host');
        expect(types(rehearsed)).to.include('ProvisionJobCompleted');
      }
    });

    it('a live run fails without a provisioner, and the tenant with it', () => {
      const [started, failed] = decideRun(approved({ dryRun: false }), 5, ann, 'host');
      expect(started?.data).to.deep.include({ tenantStatus: 'provisioning' });
      expect(failed?.data).to.deep.include({ tenantStatus: 'error' });
      expect(String(failed?.data.error)).to.include('no provisioner');
      const down = decideRun(approved({ dryRun: false, jobType: 'decommission' }), 5, ann, 'host');
      expect(down[0]?.data).to.deep.include({ tenantStatus: 'decommissioning' });
    });
  });

  it('the plan of a decommission removes only what was asked for', () => {
    const plan = (removes: Partial<typeof NONE>) =>
      planFor('decommission', { slug: 'acme', linuxUser: 'acme' }, { ...NONE, ...removes }).map((step) => step.key);
    expect(plan({})).to.deep.equal(['stop-services']);
    expect(plan({ remove_linux_user: true })).to.deep.equal(['stop-services', 'remove-linux-user']);
    expect(plan({ remove_state_dirs: true })).to.deep.equal(['stop-services', 'remove-state-dirs']);
  });
});
