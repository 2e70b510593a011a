import { expect } from 'chai';
import { agentAttributionProjection } from '../../../projections/agents/attribution.ts';
import { auditEntriesPurged, recordsPurged } from '../../../shared/events/admin/cleanup.ts';
import { agentDetailsChanged, agentStatusChanged } from '../../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived } from '../../../shared/events/agents/heartbeat.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import { taskCommented } from '../../../shared/events/tasks/comments.ts';
import { taskCreated } from '../../../shared/events/tasks/tasks.ts';
import { DAY_MS, HOUR_MS, startOf } from '../../../shared/time-buckets.ts';
import { type Draft, eventsOf, registeredAgent, rowsAfter, sample, timeOf } from '../../support/kit.ts';
import { TASK } from '../../support/tasks.ts';

type Meta = Partial<DomainEvent['meta']>;

const OWN_KEY: Meta = { actor: { type: 'agent', id: 7, name: 'agent:scout' } };
const NAMED: Meta = { actor: { type: 'api', id: 0, name: 'api' }, agent: 7 };

const rowsOf = (...told: readonly (readonly [Draft, Meta?])[]) => {
  const events = eventsOf(told.map(([draft]) => draft));
  return rowsAfter(
    agentAttributionProjection,
    events.map((event, at) => ({ ...event, meta: { ...event.meta, ...told[at]?.[1] } })),
  );
};

const about = { agent_id: 7, name: 'scout' };
const heartbeat = sample(agentHeartbeatReceived, { ...about, last_activity: 'Heartbeat' });
const created = (createdBy: string) =>
  taskCreated.draft({ task_id: 3, task: { ...TASK, created_by: createdBy, description: 'for scout' }, source: 'api' });
const commented = (commentId: number) =>
  sample(taskCommented, {
    task_id: 3,
    title: 'Mend the roof',
    comment_id: commentId,
    author: 'scout',
    content: 'scout says',
  });
const renamed = sample(agentDetailsChanged, { ...about, changes: { name: 'pathfinder' }, via: 'id' });
const purged = (...ids: number[]) => recordsPurged.draft({ table: 'activities', ids, counts: [], phrases: [] });

const known = (rows: readonly { readonly kind: string; readonly type: string; readonly known_by: string }[]) =>
  rows.map(({ kind, type, known_by }) => `${kind} ${type} ${known_by}`);

describe('projection: attribution', () => {
  it('attributes actions by an agent’s key, or by a caller that named the agent', () => {
    const { actions } = rowsOf([created('Ann'), OWN_KEY], [created('Ann'), NAMED]);
    expect(known(actions)).to.deep.equal(['activity task_created key', 'activity task_created header']);
    expect(actions[0]).to.deep.equal({
      workspace_id: 1,
      kind: 'activity',
      id: 1,
      agent_id: 7,
      type: 'task_created',
      entity_type: 'task',
      entity_id: 3,
      known_by: 'key',
      created_at: timeOf(1) / 1_000,
      position: 1,
    });
  });

  it('attributes calls that only an agent makes, whoever the caller is', () => {
    const status = (cause: 'heartbeat' | 'wake' | 'update' | 'sweep' | 'disconnect' | 'connect') =>
      sample(agentStatusChanged, { ...about, from: 'idle', to: 'busy', cause, seen: true });
    const { actions } = rowsOf(
      [heartbeat],
      [status('heartbeat')],
      [status('connect')],
      [registeredAgent({ ...about, via: 'self' })],
      ...(['wake', 'update', 'sweep', 'disconnect'] as const).map((cause) => [status(cause)] as const),
      [registeredAgent({ ...about, via: 'operator' })],
    );
    expect(known(actions)).to.deep.equal([
      'activity agent_heartbeat call',
      'activity agent_status_change call',
      'activity agent_status_change call',
      'activity agent_created call',
      'audit agent_self_register call',
    ]);
  });

  it('attributes nothing by name alone', () => {
    const people: Meta = { actor: { type: 'user', id: 7, name: 'scout' } };
    expect(rowsOf([created('scout'), people], [commented(1), people], [renamed, people]).actions).to.deep.equal([]);
  });

  it('counts an activity and an audit entry of one event as two actions', () => {
    expect(known(rowsOf([renamed, OWN_KEY]).actions)).to.deep.equal([
      'activity agent_config_updated key',
      'audit agent_updated key',
    ]);
  });

  it('counts by hour and day, and comments also in total', () => {
    const next = { ...OWN_KEY, at: timeOf(1) + HOUR_MS };
    const { action_counts } = rowsOf([commented(1), OWN_KEY], [commented(2), next], [created('Ann'), OWN_KEY]);
    const counts = action_counts.map(({ unit, start, type, count }) => [unit, start, type, count]);
    const [hour, day] = [startOf('hour', timeOf(1)), startOf('day', timeOf(1))];
    expect(startOf('day', next.at)).to.equal(day);
    expect(counts).to.have.deep.members([
      ['hour', hour, 'comment_added', 1],
      ['hour', hour + HOUR_MS, 'comment_added', 1],
      ['hour', hour, 'task_created', 1],
      ['day', day, 'comment_added', 2],
      ['day', day, 'task_created', 1],
      ['all', 0, 'comment_added', 2],
    ]);
  });

  it('keeps its counts and the rows of the longest window when activities are removed', () => {
    const told = [
      [heartbeat, OWN_KEY],
      [commented(1), OWN_KEY],
    ] as const;
    const untouched = rowsOf(...told);
    const late = (days: number): Meta => ({ at: timeOf(1) + days * DAY_MS });
    const [soon, later] = [rowsOf(...told, [purged(1, 2), late(30)]), rowsOf(...told, [purged(1, 2), late(31)])];
    expect(soon.actions).to.deep.equal(untouched.actions);
    expect(soon.action_counts).to.deep.equal(untouched.action_counts);
    expect(known(later.actions)).to.deep.equal(['activity comment_added key']);
    expect(later.action_counts).to.deep.equal(untouched.action_counts);
  });

  it('keeps its counts and the rows of the longest window when audit entries are removed', () => {
    const untouched = rowsOf([renamed, OWN_KEY]);
    const entries = auditEntriesPurged.draft({ ids: [1], counts: [{ action: 'agent_updated', count: 1 }] });
    const late = (days: number): Meta => ({ at: timeOf(1) + days * DAY_MS });
    const [soon, later] = [
      rowsOf([renamed, OWN_KEY], [entries, late(30)]),
      rowsOf([renamed, OWN_KEY], [entries, late(31)]),
    ];
    expect(soon.actions).to.deep.equal(untouched.actions);
    expect(soon.action_counts).to.deep.equal(untouched.action_counts);
    expect(known(later.actions)).to.deep.equal(['activity agent_config_updated key']);
    expect(later.action_counts).to.deep.equal(untouched.action_counts);
  });
});
