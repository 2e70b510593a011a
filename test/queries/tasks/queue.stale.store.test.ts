/** Tasks that stand still are read page by page: none twice and none left out where several changed in the same second. */
import { expect } from 'chai';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { usersProjection } from '../../../projections/auth/users.ts';
import { projectsProjection } from '../../../projections/projects/projects.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { staleTaskReads } from '../../../queries/tasks/queue.ts';
import { projectCreated } from '../../../shared/events/projects/projects.ts';
import { sample, timeOf } from '../../support/kit.ts';
import { readModels, secondsOf } from '../../support/rows.ts';
import { createdAs } from '../../support/tasks.ts';

describe('pages of stalled tasks', () => {
  const models = readModels([tasksProjection, projectsProjection, agentsProjection, usersProjection]);
  before(async () => {
    const project = sample(projectCreated, { project_id: 1, name: 'General', slug: 'general', ticket_prefix: 'GEN' });
    const working = (taskId: number) => createdAs(taskId, { status: 'in_progress', assigned_to: 'ghost' });
    const at = (second: number, workspace = 1) => ({ at: timeOf(second), workspace });
    await models.tell(
      [project, { workspace: 1 }],
      [project, { workspace: 2 }],
      // Ids do not follow the order of time, and workspaces lie between each other.
      [working(9), at(10)],
      [working(3), at(20)],
      [working(7), at(20, 2)],
      [working(5), at(20)],
      [working(8), at(20)],
      [working(2), at(20, 2)],
      [working(1), at(30)],
      [working(4), at(30)],
      [working(6), at(40, 2)],
    );
  });

  it('contain each task once, oldest first, for any page size', async () => {
    const { stale } = staleTaskReads(models.reads);
    const until = secondsOf(100);
    for (let limit = 1; limit <= 10; limit++) {
      const ids: number[] = [];
      let after: Parameters<typeof stale>[1];
      for (let page = 0; page < 20; page++) {
        const found = await stale(until, after, limit);
        ids.push(...found.map(({ id }) => id));
        after = found.at(-1);
        if (found.length < limit || !after) break;
      }
      expect(ids, `pages of ${limit}`).to.deep.equal([9, 3, 5, 8, 2, 7, 1, 4, 6]);
    }
  });
});
