import { expect } from 'chai';
import {
  agentCostsResponse,
  byAgentResponse,
  taskCostsResponse,
  tokenStatsResponse,
  tokenTrendsResponse,
} from '../../../shared/contract/tokens/usage.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startTasksWorld } from '../../support/worlds/tasks.ts';
import { usage } from '../../support/worlds/tokens.ts';

const PATH = '/api/tokens';

// The sums themselves are compared with the reports in the tests of the queries.
describe('GET /api/tokens', () => {
  const world = fixture(startTasksWorld);

  const { ask } = world;

  it('shows a new report at once in every action and each timeframe that covers it', async () => {
    const { id, name } = await world.create();
    const { id: taskId } = await world.task();
    const model = world.fresh('model');
    const { record } = (await ask('POST', PATH, usage({ sessionId: `${name}:cli`, model, taskId }))).body;
    const stats = {
      totalTokens: 1_100,
      totalCost: 0.0045,
      estimatedCost: 0.0045,
      requestCount: 1,
      avgTokensPerRequest: 1_100,
      avgCostPerRequest: 0.0045,
    };
    const date = new Date(record.timestamp).toISOString().slice(0, 10);
    const timeline = [{ date, cost: 0.0045, tokens: 1_100 }];
    for (const timeframe of ['hour', 'day', 'week', 'month', 'all', date]) {
      const of = (action: string) => ask('GET', `${PATH}?action=${action}&timeframe=${timeframe}`);
      const body = conforms(tokenStatsResponse, await of('stats'));
      expect(body.timeframe).to.equal(timeframe);
      expect(body.models[model]).to.deep.equal(stats);
      expect(body.agents[name]).to.deep.equal(stats);
      expect(body.sessions[`${name}:cli`]).to.deep.equal(stats);
      expect(body.recordCount).to.equal(body.summary.requestCount);
      const agents = await of('agent-costs');
      conforms(agentCostsResponse, agents);
      expect(agents.body.agents[name]).to.deep.equal({
        stats,
        models: { [model]: stats },
        sessions: [`${name}:cli`],
        timeline,
      });
      const tasks = await of('task-costs');
      conforms(taskCostsResponse, tasks);
      const task = tasks.body.tasks.find((one: { taskId: number }) => one.taskId === taskId);
      expect(task).to.deep.include({ stats, models: { [model]: stats }, timeline, assignedTo: null });
      expect(task.project.ticketRef).to.match(/^[A-Z]+-\d{3,}$/);
      expect(tasks.body.agents[name]).to.deep.equal({ stats, taskCount: 1, taskIds: [taskId] });
      expect(tasks.body.projects[task.project.id].taskIds).to.include(taskId);
      expect(conforms(tokenTrendsResponse, await of('trends')).trends.at(-1).timestamp).to.match(/:00:00\.000Z$/);
    }
    const body = conforms(byAgentResponse, await ask('GET', '/api/tokens/by-agent'));
    expect(body.summary.days).to.equal(30);
    expect(body.agents.find((one: { agent_id: number }) => one.agent_id === id)).to.deep.equal({
      agent: name,
      agent_id: id,
      total_input_tokens: 1_000,
      total_output_tokens: 100,
      total_tokens: 1_100,
      total_cost: 0.0045,
      estimated_cost: 0.0045,
      session_count: 1,
      request_count: 1,
      last_active: new Date(record.timestamp).toISOString(),
      models: [
        { model, input_tokens: 1_000, output_tokens: 100, request_count: 1, cost: 0.0045, estimated_cost: 0.0045 },
      ],
    });
  });

  it('counts the cost of a deleted task neither for a task nor as unassigned', async () => {
    const { id: taskId } = await world.task();
    const costs = async () => (await ask('GET', `${PATH}?action=task_costs`)).body;
    const before = await costs();
    await ask('POST', PATH, usage({ taskId }));
    const used = await costs();
    expect(used.summary.requestCount).to.equal(before.summary.requestCount + 1);
    await ask('DELETE', `/api/tasks/${taskId}`);
    const after = await costs();
    expect(after.summary).to.deep.equal(before.summary);
    expect(after.unattributed).to.deep.equal(before.unattributed);
    expect(after.attributedRecordCount).to.equal(before.attributedRecordCount + 1);
  });

  it('follows a renamed agent', async () => {
    const { id, name } = await world.create();
    await ask('POST', PATH, usage({ sessionId: `${name}:cli` }));
    const renamed = world.fresh('renamed');
    expect((await ask('PUT', `/api/agents/${id}`, { name: renamed })).status).to.equal(200);
    await ask('POST', PATH, usage({ sessionId: `${renamed}:cli` }));
    const { agents } = (await ask('GET', `${PATH}?action=stats`)).body;
    expect(agents[renamed].requestCount).to.equal(2);
    expect(agents).not.to.have.property(name);
  });

  it('treats property names of JavaScript objects as normal names', async () => {
    const name = 'toString';
    await ask('POST', PATH, usage({ model: name, sessionId: `${name}:constructor` }));
    const reply = await ask('GET', `${PATH}?action=stats`);
    expect(Object.keys(reply.body.models)).to.include(name);
    expect(Object.keys(reply.body.agents)).to.include(name);
  });

  it('accepts several spellings of an action, and rejects unknown ones', async () => {
    for (const action of ['task-costs', 'task_costs', 'TaskCosts', ' stats ']) {
      expect((await ask('GET', `${PATH}?action=${encodeURIComponent(action)}`)).status, action).to.equal(200);
    }
    for (const action of ['session-costs', 'constructor', '']) {
      const reply = await world.refused('GET', `${PATH}?action=${action}`, undefined, 400, /list, stats/);
      expect(reply.body.action).to.equal(action);
    }
  });

  it('sums since a day, and lists the reports before a time', async () => {
    const { name } = await world.create();
    const { record } = (await ask('POST', PATH, usage({ sessionId: `${name}:cli` }))).body;
    const dayOf = (ahead: number) => new Date(record.timestamp + ahead * 86_400_000).toISOString().slice(0, 10);
    const since = async (day: string) =>
      (await ask('GET', `${PATH}?action=agent-costs&timeframe=${day}`)).body.agents[name]?.stats.requestCount;
    expect([await since(dayOf(0)), await since(dayOf(1))]).to.deep.equal([1, undefined]);
    const listed = async (before: number) =>
      (await ask('GET', `${PATH}?timeframe=${dayOf(0)}&before=${before}`)).body.usage.filter(
        (one: { agentName: string }) => one.agentName === name,
      ).length;
    expect([await listed(record.timestamp + 1), await listed(record.timestamp)]).to.deep.equal([1, 0]);
  });

  it('treats an unknown timeframe as all, and returns it', async () => {
    const all = (await ask('GET', `${PATH}?action=stats`)).body;
    const { timeframe, ...other } = (await ask('GET', `${PATH}?action=stats&timeframe=fortnight`)).body;
    expect(timeframe).to.equal('fortnight');
    expect({ ...other, timeframe: 'all' }).to.deep.equal(all);
  });

  it('clamps days to 1 and 365', async () => {
    for (const [asked, days] of [
      ['0', 1],
      ['-3', 1],
      ['7', 7],
      ['9999', 365],
      ['x', 30],
      ['', 30],
    ]) {
      const reply = await ask('GET', `/api/tokens/by-agent?days=${asked}`);
      expect(reply.body.summary.days, String(asked)).to.equal(days);
    }
  });
});
