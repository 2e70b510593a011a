/** Unassigned tasks, and the agents that may get them. */
import { expect } from 'chai';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { projectsProjection } from '../../../projections/projects/projects.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { routingReads } from '../../../queries/tasks/routing.ts';
import { agentHidden, agentShown } from '../../../shared/events/agents/agents.ts';
import { projectCreated } from '../../../shared/events/projects/projects.ts';
import { sample, timeOf } from '../../support/kit.ts';
import { agentRegisteredAs, readModels } from '../../support/rows.ts';
import { createdAs } from '../../support/tasks.ts';

const project = sample(projectCreated, { project_id: 1, name: 'General', slug: 'general', ticket_prefix: 'GEN' });

describe('routing queries', () => {
  const models = readModels([tasksProjection, projectsProjection, agentsProjection]);
  before(async () => {
    const second = { workspace: 2 };
    await models.tell(
      project,
      [project, second],
      agentRegisteredAs(1, 'ada'),
      agentRegisteredAs(2, 'away', { status: 'offline' }),
      agentRegisteredAs(3, 'broken', { status: 'error' }),
      agentRegisteredAs(4, 'hidden'),
      agentHidden.draft({ agent_id: 4, name: 'hidden' }),
      agentRegisteredAs(5, 'busy', { status: 'busy' }),
      createdAs(1),
      [agentRegisteredAs(6, 'kim'), second],
      [agentHidden.draft({ agent_id: 6, name: 'kim' }), second],
      [createdAs(2), second],
    );
  });

  it('exclude agents that are hidden, offline or in error', async () => {
    const { agents } = routingReads(models.reads);
    expect((await agents(1, 10)).map(({ name }) => name)).to.deep.equal(['ada', 'busy']);
    expect(await agents(2, 10)).to.deep.equal([]);
  });

  it('assign no task in a workspace whose agents are all hidden, until one is shown', async () => {
    const { unassigned, agents } = routingReads(models.reads);
    const found = async () => (await unassigned(10)).map(({ workspace, id }) => [workspace, id]);
    expect(await found()).to.deep.equal([[1, 1]]);
    await models.tell([agentShown.draft({ agent_id: 6, name: 'kim' }), { workspace: 2 }]);
    expect(await found()).to.deep.equal([
      [1, 1],
      [2, 2],
    ]);
    expect((await agents(2, 10)).map(({ name }) => name)).to.deep.equal(['kim']);
  });

  it('order otherwise equal tasks by id, wherever a page ends', async () => {
    const meta = { workspace: 3, at: timeOf(50) };
    await models.tell([project, meta], [agentRegisteredAs(7, 'lea'), meta]);
    for (const id of [13, 11, 15, 12, 14]) await models.tell([createdAs(id), meta]);
    for (let limit = 1; limit <= 5; limit++) {
      const found = (await routingReads(models.reads).unassigned(limit)).filter(({ workspace }) => workspace === 3);
      expect(found.map(({ id }) => id)).to.deep.equal([11, 12, 13, 14, 15].slice(0, limit));
    }
  });
});
