import { expect } from 'chai';
import { diagnosticsProjection } from '../../../projections/agents/diagnostics.ts';
import { agentDetailsChanged, agentStatusChanged } from '../../../shared/events/agents/agents.ts';
import { seconds } from '../../../shared/time.ts';
import { type Draft, eventsOf, registeredAgent, rowsAfter, sample, timeOf } from '../../support/kit.ts';
import { claimed, created, deleted, requeued, reviewed, statusSet, updated } from '../../support/tasks.ts';

const rows = (...drafts: Draft[]) => rowsAfter(diagnosticsProjection, eventsOf(drafts));
const signals = (...drafts: Draft[]) =>
  rows(...drafts).signals.map(({ kind, agent, type, description }) => `${kind} ${agent} ${type}: ${description}`);

const ADA = { assigned_to: 'ada' };
const renamed = (name: string | undefined) =>
  sample(agentDetailsChanged, {
    agent_id: 7,
    name: 'ada',
    changes: name === undefined ? { role: 'lead' } : { name },
    via: 'id',
  });
const status = (from: string, to: string, lastActivity: string | null = null) =>
  sample(agentStatusChanged, { agent_id: 7, name: 'ada', from, to, cause: 'update', last_activity: lastActivity });

describe('projection diagnostics', () => {
  it('stores all names of an agent with their start times', () => {
    const { names } = rows(registeredAgent({ agent_id: 7, name: 'ada' }), renamed(undefined), renamed('Ada'));
    expect(names).to.deep.equal([
      { workspace_id: 1, agent_id: 7, id: 1, name: 'ada', since: seconds(timeOf(1)), position: 1 },
      { workspace_id: 1, agent_id: 7, id: 3, name: 'Ada', since: seconds(timeOf(3)), position: 3 },
    ]);
  });

  it('stores each status of an agent with its start time', () => {
    const { statuses } = rows(
      registeredAgent({ agent_id: 7, name: 'ada', status: 'offline' }),
      status('offline', 'busy'),
    );
    expect(statuses.map(({ status: one, since }) => [one, since])).to.deep.equal([
      ['offline', seconds(timeOf(1))],
      ['busy', seconds(timeOf(2))],
    ]);
  });

  it('counts a task as completed for its assignee whenever it becomes done, in any way', () => {
    const done = 'completed ada task_completed: Completed task "Mend the roof"';
    expect(signals(created({ ...ADA, status: 'done' }))).to.deep.equal([done]);
    expect(signals(updated({ status: 'done' }, ADA))).to.deep.equal([done]);
    expect(signals(updated({ status: 'done' }, { ...ADA, status: 'done' })), 'it was done').to.deep.equal([]);
    expect(signals(updated({ status: 'done' })), 'of nobody').to.deep.equal([]);
    expect(signals(updated({ status: 'inbox' }, { ...ADA, status: 'done' })), 'taken up again').to.deep.equal([]);
    expect(signals(statusSet('inbox', 'done')), 'of nobody').to.deep.equal([]);
    expect(signals(claimed(), deleted(ADA))).to.deep.equal([]);
  });

  it('counts a task as failed once, by its status or its outcome, with the reason', () => {
    const errorMessage = 'disk full';
    expect(signals(updated({ status: 'failed', outcome: 'failed', error_message: errorMessage }, ADA))).to.deep.equal([
      'failed ada task_failed: disk full',
    ]);
    expect(signals(created({ ...ADA, outcome: 'failed' }))).to.deep.equal([
      'failed ada task_outcome_failed: Outcome of task "Mend the roof": failed',
    ]);
    expect(signals(updated({ outcome: 'abandoned', error_message: errorMessage }, ADA))).to.deep.equal([
      'failed ada task_outcome_abandoned: disk full',
    ]);
    for (const outcome of ['success', 'partial', null])
      expect(signals(updated({ outcome }, ADA)), String(outcome)).to.deep.equal([]);
    const failed = { ...ADA, status: 'failed', outcome: 'failed' };
    expect(signals(updated({ resolution: 'none' }, failed)), 'it had failed before').to.deep.equal([]);
    expect(signals(updated({ status: 'done', outcome: 'failed' }, ADA))).to.have.length(2);
  });

  it('counts a task as failed if its agent became inactive or a review rejects it', () => {
    expect(signals(requeued())).to.deep.equal(['failed ada task_stalled: ada fell silent over task "Mend the roof"']);
    expect(signals(requeued(5))[0]).to.match(/^failed ada task_failed: The agent ada went offline/);
    const review = reviewed('rejected');
    const { before, after } = review.data;
    const ofAda = { ...review, data: { ...review.data, before: { ...before, ...ADA }, after: { ...after, ...ADA } } };
    expect(signals(ofAda)).to.deep.equal(['failed ada quality_review_rejected: as agreed']);
    expect(signals(review), 'of nobody').to.deep.equal([]);
    const approved = {
      ...ofAda,
      data: { ...ofAda.data, status: 'approved', after: { ...after, ...ADA, status: 'done' } },
    };
    expect(signals(approved)).to.deep.equal(['completed ada task_completed: Completed task "Mend the roof"']);
  });

  it('counts an agent’s status error as a failure, with its message', () => {
    expect(
      signals(status('busy', 'error', 'no network'), status('error', 'error'), status('error', 'idle')),
    ).to.deep.equal(['failed ada agent_error: no network']);
    expect(signals(status('busy', 'error'))).to.deep.equal(['failed ada agent_error: Agent ada: busy → error']);
  });

  it('truncates long reasons, and keeps the task', () => {
    const { signals: found } = rows(updated({ status: 'failed', error_message: 'x'.repeat(5_000) }, ADA));
    const error_message = 'x'.repeat(500);
    expect(found[0]?.description).to.equal(error_message);
    expect(found[0]?.data).to.deep.equal({ task_id: 7, title: 'Mend the roof', error_message });
  });

  it('counts by agent, kind, hour and type', () => {
    const hour = seconds(timeOf(1)) - (seconds(timeOf(1)) % 3_600);
    const one = { workspace_id: 1, agent: 'ada', start: hour };
    expect(rows(requeued(), requeued(), updated({ status: 'done' }, ADA)).signal_hours).to.deep.equal([
      { ...one, kind: 'failed', type: 'task_stalled', count: 2, position: 2 },
      { ...one, kind: 'completed', type: 'task_completed', count: 1, position: 3 },
    ]);
  });
});
