/** What the agent runner gets of a task's ticket, and of an earlier rejection. */
import { expect } from 'chai';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { projectsProjection } from '../../../projections/projects/projects.ts';
import { qualityReviewsProjection } from '../../../projections/quality/reviews.ts';
import { taskCommentsProjection } from '../../../projections/tasks/comments.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { dispatchReads } from '../../../queries/tasks/dispatch.ts';
import { projectCreated, projectDeletionBegun, projectUpdated } from '../../../shared/events/projects/projects.ts';
import { taskCommented } from '../../../shared/events/tasks/comments.ts';
import type { TaskData } from '../../../shared/events/tasks/tasks.ts';
import { sample, timeOf } from '../../support/kit.ts';
import { agentRegisteredAs, openReadModels, type ReadModels } from '../../support/rows.ts';
import { createdAs, reviewed, TASK } from '../../support/tasks.ts';

let comments = 0;
const commented = (content: string, author = 'aegis') =>
  sample(taskCommented, { task_id: 7, title: TASK.title, comment_id: ++comments, author, content });

describe('dispatch queries', () => {
  let models: ReadModels;
  beforeEach(async () => {
    comments = 0;
    models = await openReadModels([
      ...[tasksProjection, projectsProjection, agentsProjection, qualityReviewsProjection, taskCommentsProjection],
    ]);
  });
  afterEach(() => models?.close());
  const rejection = (workspace = 1) => dispatchReads(models.reads).rejection(workspace, 7);

  it('return the gatekeeper’s latest review as the rejection, and ignore comments under its name', async () => {
    await models.tell(commented('as a user called aegis'));
    expect(await rejection()).to.equal(null);
    await models.tell(
      reviewed('rejected', { notes: 'first' }),
      reviewed('rejected', { reviewer: 'ann', notes: 'hers' }),
    );
    expect(await rejection()).to.equal('first');
    await models.tell(reviewed('rejected', { notes: 'second' }), commented('later'));
    expect(await rejection()).to.equal('second');
    expect(await rejection(2), 'of another workspace').to.equal(null);
  });

  it('return the current ticket prefix of the project, even a deleted one', async () => {
    const project = { project_id: 7, name: 'API', slug: 'api', ticket_prefix: 'API' };
    const more = { description: null, github_repo: null, deadline: null, color: null };
    const prefix = (workspace = 1) => dispatchReads(models.reads).prefix(workspace, 7);
    await models.tell(projectCreated.draft({ ...project, ...more }));
    expect([await prefix(), await prefix(2)]).to.deep.equal(['API', '']);
    await models.tell(projectUpdated.draft({ ...project, changes: { ticket_prefix: 'WEB' } }));
    await models.tell(projectDeletionBegun.draft(project));
    expect(await prefix()).to.equal('WEB');
  });

  it('return no rejection after an approval', async () => {
    await models.tell(reviewed('rejected'));
    expect(await rejection()).to.equal('as agreed');
    await models.tell(reviewed('approved'));
    expect(await rejection()).to.equal(null);
  });

  it('order otherwise equal tasks by id, wherever a page ends', async () => {
    const second = { at: timeOf(50) };
    const made = (taskId: number, fields: Partial<TaskData>) => [createdAs(taskId, fields), second] as const;
    await models.tell(
      sample(projectCreated, { project_id: 1, name: 'General', slug: 'general', ticket_prefix: 'GEN' }),
      agentRegisteredAs(1, 'ada'),
      agentRegisteredAs(2, 'bob'),
    );
    // Neither the order in which they are made nor its reverse.
    for (const id of [13, 11, 15, 12, 14])
      await models.tell(
        made(id, { status: 'assigned', assigned_to: id % 2 ? 'ada' : 'bob' }),
        made(id + 10, { status: 'review', assigned_to: 'ada' }),
      );
    const { assigned, reviewable } = dispatchReads(models.reads);
    for (let limit = 1; limit <= 5; limit++) {
      expect((await assigned(limit)).map(({ id }) => id)).to.deep.equal([11, 12, 13, 14, 15].slice(0, limit));
      expect((await reviewable(limit)).map(({ id }) => id)).to.deep.equal([21, 22, 23, 24, 25].slice(0, limit));
    }
  });
});
