/** Standup reports: of a day, and of earlier days. */
import { expect } from 'chai';
import { type StandupReport, standupResponse, standupsResponse } from '../../../shared/contract/monitoring/standups.ts';
import { fixture } from '../../support/fixture.ts';
import { call, startTestService } from '../../support/service.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { makeAgent, makeTask } from '../../support/worlds/monitoring.ts';

describe('/api/standup', () => {
  const base = fixture(startTestService);

  let agent: { id: number };
  before(async () => {
    agent = await makeAgent(base, 'stan');
    await makeAgent(base, 'ollie');
  });
  const generate = async (body: object, key = base.adminKey): Promise<StandupReport> =>
    conforms(standupResponse, await call(base, 'POST', '/api/standup', body, { 'x-api-key': key })).standup;
  const history = async (query = '') => {
    const body = conforms(standupsResponse, await call(base, 'GET', `/api/standup${query}`));
    return standupsResponse.parse(body);
  };

  it('reports nothing about unknown agents', async () => {
    const report = await generate({ agents: ['nobody by this name'] });
    expect(report.agentReports).to.deep.equal([]);
    expect(report.summary.totalAgents).to.equal(0);
  });

  it('reports completed and open work of every agent', async () => {
    const task = (fields: object) => makeTask(base, { assigned_to: 'stan', ...fields });
    const done = await task({ status: 'done', title: 'Done' });
    const doing = await task({ status: 'in_progress', due_date: 1_000 });
    const late = await makeTask(base, { due_date: 999, tags: ['roof'] });
    const high = await task({ status: 'assigned', priority: 'high' });
    const medium = await task({
      status: 'assigned',
      metadata: { note: 'blocked by rain', password: 'hunter2hunter2' },
    });
    const review = await task({ status: 'quality_review' });
    await task({ status: 'done', due_date: 998 });
    await call(base, 'POST', `/api/agents/${agent.id}/heartbeat`, {});
    const report = await generate({ agents: ['stan'] });
    const [stan, ...others] = report.agentReports;
    expect(others).to.deep.equal([]);
    expect(stan?.agent).to.deep.include({ name: 'stan', role: 'coder', status: 'idle' });
    const ids = (list: readonly { id: number }[] = []) => list.map(({ id }) => id);
    expect(ids(stan?.completedToday)).to.have.length(2).and.include(done);
    expect(ids(stan?.inProgress)).to.deep.equal([doing]);
    // By the name of the priority, backwards.
    expect(ids(stan?.assigned)).to.deep.equal([medium, high]);
    expect(ids(stan?.review)).to.deep.equal([review]);
    expect(ids(stan?.blocked)).to.deep.equal([medium]);
    expect(JSON.parse(stan?.blocked[0]?.metadata ?? '')).to.include({ password: 'hunter2hunter2' });
    expect(stan?.activity.actionCount).to.be.above(0);
    expect(report.teamBlockers).to.have.length(1);
    expect(report.teamBlockers[0]).to.include({ id: medium, agent: 'stan' });
    expect(report.teamAccomplishments[0]).to.include({ agent: 'stan', status: 'done' });
    expect(ids(report.overdueTasks)).to.deep.equal([late, doing]);
    expect(report.overdueTasks[0]).to.deep.include({ tags: '["roof"]', metadata: '{}', agent_name: null });
    expect(report.overdueTasks[1]).to.include({ agent_name: 'stan', assigned_to: 'stan' });
    expect(report.summary).to.deep.include({
      totalAgents: 1,
      totalCompleted: 2,
      totalInProgress: 1,
      totalAssigned: 2,
      totalReview: 1,
      totalBlocked: 1,
      overdue: 2,
    });
    const { activities } = (await call(base, 'GET', '/api/activities?type=standup_generated')).body;
    expect(activities[0]).to.include({ entity_type: 'standup', entity_id: 0, actor: 'api' });
    expect(activities[0].data).to.deep.equal({
      date: report.date,
      agentCount: 1,
      tasksSummary: { completed: 2, inProgress: 1, assigned: 2, review: 1, blocked: 1 },
    });
    // Secrets in metadata are for admins.
    const key = (await call(base, 'POST', `/api/agents/${agent.id}/keys`, { scopes: ['operator'] })).body.api_key;
    expect(JSON.stringify(await generate({ agents: ['stan'] }, key))).not.to.include('hunter2');
  });

  it('stores the numbers of each day once, the newest report first', async () => {
    const first = await generate({ date: '2026-01-31', agents: 'stan' });
    expect(first.summary.totalAgents).to.be.above(1);
    expect(first.summary).to.deep.include({ totalCompleted: 0, totalActivity: 0 });
    await generate({ date: '2024-02-29' });
    const again = await generate({ date: '2026-01-31', agents: ['stan', 'nobody'] });
    const { history: reports, total, page, limit } = await history('?limit=2');
    expect({ page, limit }).to.deep.equal({ page: 1, limit: 2 });
    expect(reports.map(({ id }) => id)).to.deep.equal(['2026-01-31-0', '2024-02-29-1']);
    expect(reports[0]).to.deep.include({ agentCount: 1, summary: again.summary, generatedAt: again.generatedAt });
    const rest = await history('?limit=2&offset=2');
    expect(rest).to.include({ total, page: 2 });
    expect(rest.history).to.have.length(total - 2);
  });

  it('rejects an invalid date', async () => {
    for (const date of ['2026-02-30', '2026-13-01', '31.01.2026', '2026-1-1', '', 20260131, null]) {
      const { status, body } = await call(base, 'POST', '/api/standup', { date });
      expect(status, String(date)).to.equal(400);
      expect(body.error).to.match(/^date: /);
    }
    expect((await call(base, 'POST', '/api/standup', [])).status).to.equal(400);
  });

  it('rejects a list with an invalid name instead of reporting on all agents', async () => {
    for (const name of [5, null, {}, 'a'.repeat(501), 'a\0']) {
      const { status, body } = await call(base, 'POST', '/api/standup', { agents: ['stan', name] });
      expect(status, String(name)).to.equal(400);
      expect(body.error).to.match(/^agents\.1: /);
    }
    for (const agents of [[], 'nobody', 5, null])
      expect((await generate({ agents })).summary.totalAgents, String(agents)).to.be.above(0);
  });
});
