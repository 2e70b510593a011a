import { expect } from 'chai';
import { taskDecider } from '../../../commands/tasks/tasks.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { catalogue } from '../../../shared/events/catalogue.ts';
import type { EventDefinition } from '../../../shared/events/define.ts';
import { taskDispatched } from '../../../shared/events/tasks/dispatch.ts';
import { TASK_CHANGES } from '../../../shared/events/tasks/evolution.ts';
import { taskRecurred } from '../../../shared/events/tasks/recurrence.ts';
import { type TaskData, taskMoved } from '../../../shared/events/tasks/tasks.ts';
import { sampleOf } from '../../support/golden.ts';
import { type Draft, eventsOf, givenFor, rowsAfter } from '../../support/kit.ts';
import {
  at,
  claimed,
  created,
  deleted,
  placed,
  requeued,
  reviewed,
  statusSet,
  TASK,
  updated,
} from '../../support/tasks.ts';

const rows = (...drafts: readonly Draft[]) => {
  const { tasks, task_counts } = rowsAfter(tasksProjection, eventsOf(drafts));
  const counts = task_counts
    .filter(({ count }) => count !== 0)
    .map((row) => [row.status, row.priority, row.assigned_to, row.project_id, row.count]);
  return { task: tasks[0], tasks, counts };
};

describe('projection tasks', () => {
  it('stores title, project and time apart, because lists need them and they change often', () => {
    const told = [
      created(),
      updated({ title: 'Mend the gate' }),
      statusSet('inbox', 'review'),
      taskMoved.draft({ task_id: 7, title: 'Mend the gate', ...placed({}, { project_id: 2 }), project_ticket_no: 8 }),
    ];
    for (const [n] of told.entries()) {
      const { tasks, task_changes } = rowsAfter(tasksProjection, eventsOf(told.slice(0, n + 1)));
      const [{ workspace_id, id, project_id, title, updated_at, position }] = tasks as [(typeof tasks)[number]];
      expect(task_changes).to.deep.equal([{ workspace_id, id, project_id, title, updated_at, position }]);
    }
    expect(rowsAfter(tasksProjection, eventsOf([...told, deleted()])).task_changes).to.deep.equal([]);
  });

  it('has the record that decisions have, after every type of event that changes a task', () => {
    for (const type of TASK_CHANGES) {
      const about = (definition: EventDefinition): Draft => ({
        type: definition.type,
        data: { ...sampleOf(definition), task_id: 7 },
      });
      const drafts = [
        created({ metadata: { github_issue_number: 4 } }),
        about(taskDispatched as EventDefinition),
        about(catalogue.get(type) as EventDefinition),
      ];
      const state = givenFor(taskDecider)(...drafts).state;
      const { task: row } = rows(...drafts);
      expect(row, type).to.include({ id: state.id, created_at: state.created_at, updated_at: state.updated_at });
      for (const [name, value] of Object.entries(state.task))
        expect(row, `${type}: ${name}`).to.deep.include({ [name]: value });
      expect(row?.source, type).to.deep.equal(state.source);
      const { asked, recurred } = state;
      expect(row?.asked, type).to.equal(asked === null ? null : asked.accepted ? 'accepted' : asked.what);
      expect([row?.recurred_at, row?.recurred_child], type).to.deep.equal([
        recurred?.due_at ?? null,
        recurred?.child_id ?? null,
      ]);
    }
  });

  it('has a row per task', () => {
    const { task, counts } = rows(created({ assigned_to: 'ada', priority: 'high', tags: ['roof'], due_date: 9 }));
    expect(task).to.deep.equal({
      workspace_id: 1,
      id: 7,
      title: 'Mend the roof',
      description: null,
      status: 'inbox',
      priority: 'high',
      priority_rank: 1,
      project_id: 1,
      project_ticket_no: 3,
      assigned_to: 'ada',
      assignee_id: null,
      created_by: 'Ann',
      creator_agent: null,
      created_at: at(1),
      updated_at: at(1),
      due_date: 9,
      estimated_hours: null,
      actual_hours: null,
      outcome: null,
      error_message: null,
      resolution: null,
      feedback_rating: null,
      feedback_notes: null,
      retry_count: 0,
      completed_at: null,
      tags: ['roof'],
      metadata: {},
      dispatch_attempts: 0,
      asked: null,
      cron: null,
      cron_since: at(1),
      recurred_at: null,
      recurred_child: null,
      source: null,
      position: 1,
    });
    expect(counts).to.deep.equal([['inbox', 'high', 'ada', 1, 1]]);
  });

  it('stores the creating agent, by key or by the name that a user gave, whatever happens to the task', () => {
    const creatorOf = (meta: Parameters<typeof eventsOf>[1]) =>
      rowsAfter(tasksProjection, eventsOf([created(), updated({ assigned_to: 'eve' }), claimed('bob')], meta)).tasks[0]
        ?.creator_agent;
    expect(creatorOf({ actor: { type: 'agent', id: 5, name: 'agent:kim' } })).to.equal(5);
    expect(creatorOf({ actor: { type: 'user', id: 5, name: 'ann' }, agent: 6 })).to.equal(6);
    expect(creatorOf({ actor: { type: 'user', id: 5, name: 'ann' } })).to.equal(null);
    expect(creatorOf({ actor: { type: 'system', id: 0, name: 'scheduler' } })).to.equal(null);
  });

  it('shows the task as it is after an update', () => {
    const { task, counts } = rows(
      created(),
      updated({
        title: 'Mend the door',
        priority: 'critical',
        project_id: 2,
        project_ticket_no: 1,
        metadata: { a: 1 },
      }),
    );
    expect(task).to.deep.include({
      title: 'Mend the door',
      priority_rank: 0,
      project_id: 2,
      project_ticket_no: 1,
      metadata: { a: 1 },
      created_at: at(1),
      updated_at: at(2),
    });
    expect(counts).to.deep.equal([['inbox', 'critical', '', 2, 1]]);
  });

  it('changes only the update time for an update without changes', () => {
    const { task, counts } = rows(created(), updated({}));
    expect(task).to.deep.include({ title: TASK.title, updated_at: at(2) });
    expect(counts).to.deep.equal([['inbox', 'medium', '', 1, 1]]);
  });

  it('follows statuses, verdicts and moves to another project', () => {
    expect(rows(created(), statusSet('inbox', 'review')).counts).to.deep.equal([['review', 'medium', '', 1, 1]]);
    expect(rows(created(), statusSet('inbox', 'inbox')).counts).to.deep.equal([['inbox', 'medium', '', 1, 1]]);
    const done = rows(created({ error_message: 'old' }), reviewed('approved', { completed_at: 5 }));
    expect(done.task).to.deep.include({ status: 'done', completed_at: 5, error_message: 'old', updated_at: at(2) });
    const back = rows(created(), reviewed('rejected'));
    expect(back.task).to.deep.include({ status: 'in_progress', completed_at: null, error_message: 'no' });
    const moved = rows(
      created(),
      taskMoved.draft({ task_id: 7, title: 'x', ...placed({}, { project_id: 2 }), project_ticket_no: 8 }),
    );
    expect(moved.task).to.deep.include({ project_id: 2, project_ticket_no: 8, updated_at: at(2) });
    expect(moved.counts).to.deep.equal([['inbox', 'medium', '', 2, 1]]);
  });

  it('follows claims, and returns to the queue', () => {
    const { task, counts } = rows(created(), claimed());
    expect(task).to.deep.include({ status: 'in_progress', assigned_to: 'ada', updated_at: at(2) });
    expect(counts).to.deep.equal([['in_progress', 'medium', 'ada', 1, 1]]);
    const waits = rows(created({ error_message: 'old' }), claimed(), requeued(2));
    expect(waits.task).to.deep.include({ status: 'assigned', dispatch_attempts: 2, error_message: 'old' });
    const failed = rows(created(), claimed(), requeued(5));
    expect(failed.task).to.deep.include({ status: 'failed', dispatch_attempts: 5 });
    expect(failed.task?.error_message).to.match(/attempt 5/);
    expect(failed.counts).to.deep.equal([['failed', 'medium', 'ada', 1, 1]]);
  });

  it('stores schedules, their start, and the tasks created from them', () => {
    const metadata = (cron: string) => ({ note: 'n', recurrence: { cron_expr: cron, enabled: true } });
    const daily = created({ metadata: metadata('0 9 * * *') });
    expect(rows(daily).task).to.deep.include({ cron: '0 9 * * *', cron_since: at(1) });
    const same = rows(daily, updated({ title: 'x' }, { metadata: metadata('0 9 * * *') }));
    expect(same.task).to.deep.include({ cron: '0 9 * * *', cron_since: at(1) });
    const change = (before: TaskData['metadata'], after: TaskData['metadata']) => {
      const draft = updated({ metadata: after }, { metadata: before });
      return { ...draft, data: { ...draft.data, before: { ...draft.data.before, metadata: before } } };
    };
    const other = rows(daily, change(metadata('0 9 * * *'), metadata('0 8 * * *')));
    expect(other.task).to.deep.include({ cron: '0 8 * * *', cron_since: at(2) });
    expect(rows(daily, change(metadata('0 9 * * *'), {})).task).to.deep.include({ cron: null });
    const recurred = taskRecurred.draft({ task_id: 7, title: 'x', child_id: 9, due_at: 600, spawn_count: 4 });
    const { task } = rows(daily, recurred);
    expect(task).to.deep.include({ recurred_at: 600, recurred_child: 9, updated_at: at(2) });
    expect(task?.metadata).to.deep.equal({
      note: 'n',
      recurrence: { cron_expr: '0 9 * * *', enabled: true, last_spawned_at: at(2), spawn_count: 4 },
    });
  });

  it('a deleted task has no row and is not counted', () => {
    const { tasks, counts } = rows(created(), updated({ assigned_to: 'ada' }), deleted({ assigned_to: 'ada' }));
    expect(tasks).to.deep.equal([]);
    expect(counts).to.deep.equal([]);
  });
});
