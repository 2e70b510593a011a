/** Unassigned tasks: which agent fits, decided purely; then turns of several processes on one log in memory. */
import { expect } from 'chai';
import { routeTasks } from '../../../commands/schedules/tasks/routing.ts';
import { BUSY, bestOf, decideRoute, scoreOf } from '../../../commands/tasks/routing.ts';
import { taskDecider, taskStream } from '../../../commands/tasks/tasks.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import type { RoutableAgent } from '../../../queries/tasks/routing.ts';
import { taskRouted } from '../../../shared/events/tasks/routing.ts';
import { eventsOf, givenFor, rowsAfter } from '../../support/kit.ts';
import { memoryWorld } from '../../support/memory-world.ts';
import { created, deleted, placed, TASK, updated } from '../../support/tasks.ts';
import { testOrigin } from '../../support/world.ts';

const given = givenFor(taskDecider);
const agent = (name: string, fields: Partial<RoutableAgent> = {}): RoutableAgent => ({
  ...{ name, role: 'helper', status: 'online', capabilities: [], inProgress: 0, assigned: 0 },
  ...fields,
});
const task = { ...TASK, title: 'Mend the roof', description: 'It rains in', tags: ['carpentry'] };

describe('unassigned tasks: decisions', () => {
  it('score agents by words of the role, capabilities and idleness, with a minimum score', () => {
    const score = (fields: Partial<RoutableAgent>) => scoreOf(task, agent('a', fields));
    expect(score({})).to.equal(1);
    expect(score({ status: 'idle' })).to.equal(5);
    expect(score({ role: 'Roof-Mender' })).to.equal(10);
    expect(score({ role: 'roof carpentry in' }), 'short words are everywhere').to.equal(20);
    expect(score({ capabilities: ['Carpentry', 'carpentry ', '', 'plumbing'] })).to.equal(15);
    expect(score({ role: 'roof', capabilities: ['rain'], status: 'idle' })).to.equal(30);
  });

  it('go to the best agent that is not busy, and among equals to the one with the fewest tasks', () => {
    const best = (...agents: RoutableAgent[]) => bestOf(task, agents)?.agent.name;
    const roofer = { role: 'roof' };
    expect(best(agent('a'), agent('b', roofer))).to.equal('b');
    expect(best(agent('a'), agent('b', { ...roofer, inProgress: BUSY }))).to.equal('a');
    expect(best(agent('a', { inProgress: 1, assigned: 1 }), agent('b', { assigned: 1 }))).to.equal('b');
    expect(best(agent('b'), agent('a'))).to.equal('a');
    expect(best(agent('a', { inProgress: BUSY }))).to.equal(undefined);
    expect(best()).to.equal(undefined);
  });

  it('are assigned once, and only from the inbox', () => {
    const fit = { agent: agent('ada', { role: 'roof' }), score: 10 };
    const [routed, told] = decideRoute(given(created()).state, fit);
    expect(routed?.data).to.deep.include({ task_id: 7, agent: 'ada', role: 'roof', score: 10 });
    expect(told?.data).to.deep.include({ recipient: 'ada', type: 'assignment' });
    if (!routed) throw new Error('it is given away');
    const after = given(created(), routed);
    expect(after.state.task).to.deep.include({ status: 'assigned', assigned_to: 'ada' });
    expect(after.state.subscribers).to.include('ada');
    for (const drafts of [
      [created(), routed],
      [created({ assigned_to: 'ben' })],
      [created(), updated({ status: 'backlog' })],
      [created(), deleted()],
    ])
      given(...drafts)
        .when(decideRoute, fit)
        .then();
  });

  it('change status and counts in the read model', () => {
    const routed = taskRouted.draft({
      ...{ task_id: 7, title: TASK.title, agent: 'ada', role: 'roof', score: 10 },
      ...placed({}, { status: 'assigned', assigned_to: 'ada' }),
    });
    const { tasks, task_counts } = rowsAfter(tasksProjection, eventsOf([created(), routed]));
    expect(tasks[0]).to.deep.include({ status: 'assigned', assigned_to: 'ada' });
    expect(task_counts.filter(({ count }) => count > 0).map((row) => [row.status, row.assigned_to])).to.deep.equal([
      ['assigned', 'ada'],
    ]);
  });
});

describe('unassigned tasks: turns', () => {
  it('several processes assign each task once, and spread the tasks over agents', async () => {
    const world = memoryWorld();
    const commands = world.process();
    const ids = [1, 2, 3, 4];
    for (const id of ids) {
      const { task: made } = created().data;
      await commands.execute(taskDecider, taskStream(1, id), { origin: testOrigin }, () => [
        { type: 'TaskCreated', data: { task_id: id, task: made, source: 'api' } },
      ]);
    }
    const reads = {
      unassigned: async () => ids.map((id) => ({ tenant: 1, workspace: 1, id })),
      agents: async () => [agent('ada'), agent('ben')],
    };
    const turns = [1, 2, 3].map(() => routeTasks({ commands: world.process(), reads }));
    const routed = (await Promise.all(turns)).flat();
    expect(routed.sort()).to.deep.equal(ids);
    const events = world.written().filter(({ type }) => type === 'TaskRouted');
    expect(events).to.have.length(ids.length);
    const alone = await routeTasks({ commands: world.process(), reads });
    expect(alone, 'nothing is left').to.deep.equal([]);
  });
});
