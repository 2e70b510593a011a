/** Workload: how long the oldest task has been waiting. */
import { expect } from 'chai';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { activitiesProjection } from '../../../projections/monitoring/activities.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { workloadOf } from '../../../queries/monitoring/workload.ts';
import { readModels, secondsOf } from '../../support/rows.ts';
import { createdAs } from '../../support/tasks.ts';

const THRESHOLDS = {
  ...{ queue_depth_normal: 20, queue_depth_throttle: 50, queue_depth_shed: 100 },
  ...{ busy_agent_ratio_throttle: 0.8, busy_agent_ratio_shed: 0.95 },
  ...{ error_rate_throttle: 0.1, error_rate_shed: 0.25, recent_window_seconds: 300 },
};
const NOW = secondsOf(100);

describe('workload queries', () => {
  const models = readModels([tasksProjection, activitiesProjection, agentsProjection]);
  before(async () => {
    const made = (taskId: number, status: string) => createdAs(taskId, { status });
    await models.tell(
      made(1, 'done'),
      [made(2, 'inbox'), { workspace: 2 }],
      // In one workspace the oldest is in the inbox, in the other one it is assigned.
      made(3, 'inbox'),
      made(4, 'assigned'),
      [made(5, 'assigned'), { workspace: 3 }],
      made(6, 'inbox'),
      [made(7, 'inbox'), { workspace: 3 }],
      made(8, 'assigned'),
      [made(9, 'assigned'), { workspace: 3 }],
      [made(10, 'in_progress'), { workspace: 4 }],
    );
  });

  it('return the oldest waiting task of any status', async () => {
    const age = async (workspace: number) =>
      (await workloadOf(models.reads, workspace, THRESHOLDS, NOW)).queue.oldest_pending_age_seconds;
    expect(await age(1)).to.equal(NOW - secondsOf(3));
    expect(await age(2)).to.equal(NOW - secondsOf(2));
    expect(await age(3)).to.equal(NOW - secondsOf(5));
    expect(await age(4), 'nothing waits').to.equal(null);
    expect((await workloadOf(models.reads, 1, THRESHOLDS, secondsOf(1))).queue.oldest_pending_age_seconds).to.equal(0);
  });
});
