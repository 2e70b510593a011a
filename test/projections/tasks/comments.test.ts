import { expect } from 'chai';
import { taskCommentsProjection } from '../../../projections/tasks/comments.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { taskAssigned, taskCommented } from '../../../shared/events/tasks/comments.ts';
import { eventsOf, rowsAfter } from '../../support/kit.ts';
import { at, created, placed, TASK } from '../../support/tasks.ts';

const said = (commentId: number, parentId: number | null = null) =>
  taskCommented.draft({
    task_id: 7,
    title: TASK.title,
    comment_id: commentId,
    parent_id: parentId,
    depth: parentId === null ? 0 : 1,
    author: 'Ann',
    content: `comment ${commentId}`,
    mentions: ['ada'],
  });
const assigned = taskAssigned.draft({
  task_id: 7,
  title: TASK.title,
  ...placed({}, { assigned_to: 'ada', status: 'assigned' }),
  trigger: 'mention',
  by: 'Ann',
});

describe('projection task_comments', () => {
  it('has a row per comment', () => {
    const { task_comments } = rowsAfter(taskCommentsProjection, eventsOf([created(), said(31), said(32, 31)]));
    expect(task_comments).to.have.length(2);
    expect(task_comments[1]).to.deep.equal({
      workspace_id: 1,
      id: 32,
      task_id: 7,
      parent_id: 31,
      depth: 1,
      author: 'Ann',
      content: 'comment 32',
      mentions: ['ada'],
      created_at: at(3),
      position: 3,
    });
  });
});

describe('projection tasks: comments', () => {
  it('leaves the row of the task as it is', () => {
    const { tasks } = rowsAfter(tasksProjection, eventsOf([created(), said(31), said(32, 31)]));
    expect(tasks[0]).to.deep.include({ updated_at: at(1), position: 1 });
  });

  it('changes the task and the counts if a mention assigns it', () => {
    const { tasks, task_counts } = rowsAfter(tasksProjection, eventsOf([created(), said(31), assigned]));
    expect(tasks[0]).to.deep.include({ assigned_to: 'ada', status: 'assigned', updated_at: at(3) });
    expect(task_counts.filter(({ count }) => count > 0)).to.have.length(1);
    expect(task_counts.find(({ count }) => count > 0)).to.deep.include({ assigned_to: 'ada', status: 'assigned' });
  });
});
