/** Creating and changing tasks, given events, when a command is decided, then events: pure. */
import { expect } from 'chai';
import fc from 'fast-check';
import { decideStatus, decideUpdate, type TaskChange, type TaskFields } from '../../../commands/tasks/changes.ts';
import { decideCreate, existing, type TaskState, taskDecider } from '../../../commands/tasks/tasks.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { PRIORITIES, TASK_STATUSES } from '../../../shared/contract/tasks/tasks.ts';
import type { DomainEvent, EventDefinition, EventOf } from '../../../shared/events/define.ts';
import { activityOf } from '../../../shared/events/monitoring/activities.ts';
import { taskBefore, taskUpdated } from '../../../shared/events/tasks/changes.ts';
import type { TaskData } from '../../../shared/events/tasks/tasks.ts';
import { MASK } from '../../../shared/secrets.ts';
import { type Draft, eventsOf, givenFor, refusalOf, rowsAfter } from '../../support/kit.ts';
import { created, deleted, reviewed, TASK } from '../../support/tasks.ts';

const given = givenFor(taskDecider);
const NOW = 1_800_000_000;
const change = (fields: TaskFields, more: Partial<TaskChange> = {}): TaskChange => ({
  fields,
  by: 'ann',
  mentioned: [],
  move: undefined,
  now: NOW,
  ...more,
});
const told = (drafts: readonly Draft[]) =>
  drafts.map(({ type, data }) => ('recipient' in data && 'type' in data ? `${data.type} ${data.recipient}` : type));
const updateOf = (drafts: readonly Draft[]) => drafts[0]?.data as EventOf<typeof taskUpdated>['data'];
const nextOf = (state: TaskState, fields: TaskFields, more: Partial<TaskChange> = {}): TaskData =>
  updateOf(decideUpdate(state, change(fields, more))).task;

const ticket = { project_id: 1, project_ticket_no: 3 };
const create = (fields: object, mentioned: readonly string[] = []) =>
  decideCreate(7, { fields: { title: TASK.title, ...fields }, created_by: 'Ann', ticket, mentioned });

describe('task: creation', () => {
  it('with only a title puts the task into the inbox', () => {
    expect(create({})).to.deep.equal([created()]);
  });

  it('with the status done is rejected, with or without an assignee', () => {
    expect(refusalOf(() => create({ status: 'done' })).status).to.equal(403);
    expect(refusalOf(() => create({ status: 'done', assigned_to: 'ada' })).message).to.include('Aegis');
  });

  it('notifies mentioned users and agents, except the creator, then the assignee', () => {
    const drafts = create({ assigned_to: 'ada' }, ['ada', 'Ann', 'eve']);
    expect(told(drafts)).to.deep.equal([
      'TaskCreated',
      'TaskSubscribed',
      'mention ada',
      'mention eve',
      'assignment ada',
    ]);
    expect(drafts[1]?.data).to.deep.include({ names: ['eve'] });
  });

  it('does not store a mask instead of a secret', () => {
    expect(refusalOf(() => create({ metadata: { api_key: MASK } })).status).to.equal(400);
  });
});

describe('task: update', () => {
  it('sets the given fields and records the differences and previous values', () => {
    const drafts = decideUpdate(given(created()).state, change({ title: 'New', tags: ['a'], retry_count: 0 }));
    expect(drafts).to.have.length(1);
    expect(updateOf(drafts)).to.deep.include({
      task: { ...TASK, title: 'New', tags: ['a'] },
      given: ['title', 'tags', 'retry_count'],
      changed: ['title', 'tags'],
    });
    expect(updateOf(drafts).before).to.deep.equal({ title: TASK.title, tags: [] });
    expect(taskBefore(updateOf(drafts))).to.deep.equal(TASK);
  });

  it('records the previous assignee whole, so that its counts can be found', () => {
    const changed = (assigned: Partial<TaskData>, fields: TaskFields) => {
      const { state } = given(created({ ...assigned, status: 'assigned' }));
      return updateOf(decideUpdate(state, change(fields)));
    };
    const agent = { assigned_to: 'ada', assignee_id: 3 };
    const left = changed(agent, { assigned_to: '' });
    expect(left.before).to.deep.include(agent);
    expect(taskBefore(left)).to.deep.include(agent);
    const came = changed({ assigned_to: 'olga' }, { assigned_to: 'ada' });
    expect(taskBefore({ ...came, task: { ...came.task, assignee_id: 3 } }).assignee_id).to.equal(undefined);
  });

  it('without a field records nothing; with an unchanged value it records an event', () => {
    given(created()).when(decideUpdate, change({})).then();
    expect(updateOf(decideUpdate(given(created()).state, change({ title: TASK.title }))).changed).to.deep.equal([]);
    given().when(decideUpdate, change({})).thenRefuses(404);
    given(created(), deleted())
      .when(decideUpdate, change({ title: 'x' }))
      .thenRefuses(404);
  });

  it('of the assignee moves a task out of the inbox and back', () => {
    const inbox = given(created()).state;
    const assigned = given(created({ status: 'assigned', assigned_to: 'ada' })).state;
    expect(nextOf(inbox, { assigned_to: ' ada ' })).to.include({ status: 'assigned', assigned_to: 'ada' });
    expect(nextOf(inbox, { assigned_to: '' })).to.include({ status: 'inbox', assigned_to: null });
    expect(nextOf(assigned, { assigned_to: '' })).to.include({ status: 'inbox', assigned_to: null });
    expect(nextOf(assigned, { assigned_to: 'eve' })).to.include({ status: 'assigned', assigned_to: 'eve' });
    expect(nextOf(given(created({ status: 'review' })).state, { assigned_to: 'ada' })).to.include({ status: 'review' });
    expect(nextOf(assigned, { assigned_to: '', status: 'assigned' })).to.include({ status: 'assigned' });
  });

  it('to done requires approval and records the time of completion', () => {
    expect(refusalOf(() => decideUpdate(given(created()).state, change({ status: 'done' }))).message).to.include(
      'Aegis',
    );
    const approved = given(
      created(),
      reviewed('approved', { completed_at: 5 }),
      reviewed('rejected', { reviewer: 'eve' }),
    ).state;
    expect(nextOf(given(created(), reviewed('approved')).state, { status: 'done' }).completed_at).to.equal(NOW);
    expect(nextOf(approved, { status: 'done', completed_at: 9 }).completed_at).to.equal(9);
    const before = given(created({ completed_at: 4 }), reviewed('approved', { completed_at: 4 })).state;
    expect(nextOf(before, { status: 'done' }).completed_at).to.equal(4);
    expect(nextOf(before, { status: 'review' }).completed_at).to.equal(4);
  });

  it('notifies the previous assignee, the new one, and the newly mentioned', () => {
    const state = given(
      created({ assigned_to: 'ada', status: 'assigned', description: 'hello @eve. @bob-brown' }),
    ).state;
    const drafts = decideUpdate(
      state,
      change(
        { assigned_to: 'cyn', status: 'review', description: 'x' },
        { mentioned: ['eve', 'Bob Brown', 'ann', 'dan'] },
      ),
    );
    expect(told(drafts)).to.deep.equal([
      'TaskUpdated',
      'TaskSubscribed',
      'mention dan',
      'status_change ada',
      'assignment cyn',
    ]);
    expect(drafts[1]?.data).to.deep.include({ names: ['ann', 'dan'] });
    expect(told(decideUpdate(state, change({ title: 'x', assigned_to: 'ada' })))).to.deep.equal(['TaskUpdated']);
  });

  it('to another project assigns a new ticket number, and the activity names both projects', () => {
    const move = { ticket: { project_id: 2, project_ticket_no: 1 }, from: 1, names: { from: 'General', to: 'Other' } };
    const drafts = decideUpdate(given(created()).state, change({ project_id: 2 }, { move }));
    expect(updateOf(drafts)).to.deep.include({ changed: ['project_id', 'project_ticket_no'], moved: move.names });
    expect(updateOf(drafts).task).to.include(move.ticket);
    const [event] = eventsOf(drafts);
    expect(activityOf(taskUpdated as EventDefinition, event as DomainEvent)?.description).to.equal(
      'Updated task "Mend the roof": project: General → Other',
    );
  });

  it('to a project where it already is keeps the task and its number there', () => {
    const move = { ticket: { project_id: 2, project_ticket_no: 9 }, from: 1, names: { from: 'General', to: 'Other' } };
    const there = given(created({ project_id: 2 })).state;
    const { task, moved } = updateOf(decideUpdate(there, change({ project_id: 2 }, { move })));
    expect([task.project_ticket_no, moved]).to.deep.equal([3, undefined]);
  });

  it('to another project is rejected if the task has moved elsewhere meanwhile', () => {
    const move = { ticket: { project_id: 2, project_ticket_no: 9 }, from: 1, names: { from: 'General', to: 'Other' } };
    for (const one of [move, undefined]) {
      const refusal = refusalOf(() =>
        decideUpdate(given(created({ project_id: 3 })).state, change({ project_id: 2 }, { move: one })),
      );
      expect([refusal.status, refusal.extras.code]).to.deep.equal([409, 'BUSY']);
    }
  });

  it('restores masked secrets', () => {
    const state = given(created({ metadata: { api_key: 'secret', note: 'a' } })).state;
    expect(nextOf(state, { metadata: { api_key: MASK, note: 'b' } }).metadata).to.deep.equal({
      api_key: 'secret',
      note: 'b',
    });
  });
});

describe('task: bulk status change', () => {
  it('records an event even if the status is unchanged', () => {
    expect(decideStatus(given(created()).state, 'inbox', NOW)[0]?.data).to.deep.include({
      cause: 'bulk',
      completed_at: null,
    });
    expect(refusalOf(() => decideStatus(given(created()).state, 'done', NOW)).message).to.match(/^Task 7 .*Aegis/);
    expect(decideStatus(given(created(), reviewed('approved')).state, 'done', NOW)[0]?.data).to.include({
      completed_at: NOW,
    });
    given().when(decideStatus, 'inbox', NOW).thenRefuses(404);
  });
});

describe('task: any sequence of changes', () => {
  const fields = fc.record(
    {
      status: fc.constantFrom(...TASK_STATUSES),
      priority: fc.constantFrom(...PRIORITIES),
      assigned_to: fc.constantFrom('', 'ada', 'eve'),
      title: fc.constantFrom('a', 'b'),
    },
    { requiredKeys: [] },
  );
  const step = fc.oneof(fields, fc.constantFrom('approved' as const, 'rejected' as const));

  it('rows, counts and state agree, and no task is done without approval', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const drafts: Draft[] = [created()];
        for (const one of steps) {
          const state = given(...drafts).state;
          if (typeof one === 'string') {
            drafts.push(reviewedFrom(state, one));
            continue;
          }
          try {
            drafts.push(...decideUpdate(state, change(one)));
          } catch {
            expect(one.status).to.equal('done');
            expect(state.approved).to.equal(false);
          }
        }
        const { task } = existing(given(...drafts).state);
        const { tasks, task_counts } = rowsAfter(tasksProjection, eventsOf(drafts));
        expect(tasks[0]).to.deep.include({ status: task.status, assigned_to: task.assigned_to, title: task.title });
        const counted = task_counts.filter(({ count }) => count !== 0);
        expect(counted).to.have.length(1);
        expect(counted[0]).to.deep.include({
          count: 1,
          status: task.status,
          priority: task.priority,
          assigned_to: task.assigned_to ?? '',
        });
        if (task.status === 'done') expect(task.completed_at).to.be.a('number');
      }),
      { numRuns: 60 },
    );
  });
});

/** A verdict about the task as it is. */
function reviewedFrom(state: TaskState, status: 'approved' | 'rejected') {
  const { priority, assigned_to } = state.task;
  const places = { priority, assigned_to };
  const draft = reviewed(status, { completed_at: 5 });
  return {
    ...draft,
    data: {
      ...draft.data,
      before: { ...draft.data.before, ...places, status: state.task.status },
      after: { ...draft.data.after, ...places },
    },
  };
}
