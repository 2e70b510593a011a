import { expect } from 'chai';
import { DIAGNOSTICS_SECTIONS, diagnosticsResponse } from '../../../shared/contract/agents/diagnostics.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf } from '../../support/service.ts';
import { conforms, startAgentsWorld } from '../../support/worlds/agents.ts';

describe('GET /api/agents/{id}/diagnostics', () => {
  const world = fixture(startAgentsWorld);

  const { ask, create } = world;
  const diagnostics = (id: number | string, query = '') =>
    ask('GET', `/api/agents/${id}/diagnostics?privileged=1${query}`);
  const done = async (method: string, path: string, body: unknown) => bodyOf(await ask(method, path, body), 200, 201);

  it('returns every section, empty, for a new agent', async () => {
    const { id, name } = await create();
    const body = conforms(diagnosticsResponse, await diagnostics(id));
    expect(Object.keys(body)).to.deep.equal(['agent', 'timeframe', ...DIAGNOSTICS_SECTIONS]);
    expect(body.agent).to.deep.equal({ id, name, role: 'coder', status: 'offline' });
    const { hours, since, until } = body.timeframe;
    expect([hours, until - since]).to.deep.equal([24, 86_400]);
    expect(body.summary).to.deep.equal({
      tasks_completed: 0,
      tasks_total: 0,
      activity_count: 0,
      heartbeats: 0,
      error_count: 0,
      error_rate_percent: 0,
    });
    expect(body.trends.alerts).to.deep.equal([]);
    expect((await diagnostics(name)).body.agent.id).to.equal(id);
  });

  it('shows every caller how long the agent had each status', async () => {
    const { id } = await create();
    await done('PUT', `/api/agents/${id}`, { status: 'busy' });
    const viewer = await world.world.makeSession({ username: 'vera', role: 'viewer' });
    const path = `/api/agents/${id}/diagnostics`;
    const shown = await ask('GET', `${path}?section=status`, undefined, viewer);
    const { status, timeframe } = bodyOf(shown, 200);
    expect(status.spans.at(-1)).to.deep.include({ status: 'busy', until: timeframe.until });
    const seconds = Object.values(status.seconds_by_status as Record<string, number>);
    expect(seconds.reduce((sum, one) => sum + one, 0)).to.equal(timeframe.until - status.since);
    expect(timeframe.until - status.since, 'not the whole window').to.be.lessThan(60);
    for (const query of ['', '?section=status,summary'])
      expect((await ask('GET', path + query, undefined, viewer)).status).to.equal(403);
  });

  it('shows heartbeats, completed and failed tasks, errors and tokens at once', async () => {
    const { id, name } = await create();
    const path = `/api/agents/${id}`;
    const model = world.fresh('model');
    const usage = { model, inputTokens: 30, outputTokens: 4 };
    await done('POST', `${path}/heartbeat`, { token_usage: usage });
    expect((await diagnostics(id, '&section=summary')).body.summary.activity_count).to.be.above(0);
    const task = async (fields: object) =>
      (await done('POST', '/api/tasks', { title: world.fresh('task'), assigned_to: name, ...fields })).task;
    const one = await task({ priority: 'high' });
    await done('POST', '/api/quality-review', { taskId: one.id, status: 'approved', reviewer: 'aegis', notes: 'ok' });
    const two = await task({});
    await done('PUT', `/api/tasks/${two.id}`, { status: 'failed', error_message: 'disk full' });
    const three = await task({});
    await done('PUT', `/api/tasks/${three.id}`, { outcome: 'failed', error_message: 'no such file' });
    await done('PUT', path, { status: 'error' });
    await done('POST', '/api/tokens', { ...usage, sessionId: `${name}:cli` });

    const { summary, tasks, errors, activity, trends, tokens } = conforms(diagnosticsResponse, await diagnostics(id));
    expect(summary).to.deep.include({ tasks_completed: 1, tasks_total: 3, error_count: 3 });
    expect(tasks.by_status).to.deep.equal({ done: 1, failed: 1, assigned: 1 });
    expect(tasks.by_priority).to.deep.equal({ high: 1, medium: 2 });
    expect(tasks.throughput_per_day).to.equal(1);
    expect(tasks.recent_completed).to.have.length(1);
    expect(tasks.recent_completed[0]).to.include({ id: one.id, title: one.title, priority: 'high' });
    expect(
      errors.recent.map((e: { type: string; description: string }) => `${e.type}: ${e.description}`),
    ).to.deep.equal([
      `agent_error: Agent ${name}: idle → error`,
      'task_outcome_failed: no such file',
      'task_failed: disk full',
    ]);
    expect(errors.recent[1].data).to.include({ task_id: three.id, title: three.title });
    expect(errors.total).to.equal(3);
    const activities = (await ask('GET', `/api/activities?actor=${name}`)).body.total;
    expect(summary.activity_count, 'as the list of activities has').to.equal(activities);
    expect(activity.timeline.reduce((sum: number, { count }: { count: number }) => sum + count, 0)).to.equal(
      activities,
    );
    expect(trends.current_period).to.deep.include({ activities, errors: 3, tasks_completed: 1 });
    expect(trends.previous_period).to.deep.include({ activities: 0, errors: 0, tasks_completed: 0 });
    expect(trends.change).to.deep.equal({ activities_pct: 100, errors_pct: 100, tasks_completed_pct: 100 });
    expect(tokens).to.deep.equal({
      by_model: [{ model, input_tokens: 60, output_tokens: 8, request_count: 2 }],
      total: { input_tokens: 60, output_tokens: 8, requests: 2 },
    });
  });

  it('keeps an agent’s history under an earlier name', async () => {
    const { id, name } = await create();
    await done('POST', `/api/agents/${id}/heartbeat`, {});
    const renamed = world.fresh('renamed');
    await done('PUT', `/api/agents/${id}`, { name: renamed });
    const counted = (await diagnostics(id, '&section=summary')).body.summary.activity_count;
    expect(counted).to.be.above(0);
    expect((await diagnostics(renamed, '&section=summary')).body.summary.activity_count).to.equal(counted);
    expect((await diagnostics(name)).status).to.equal(404);
  });

  it('is available to the agent itself, and to admins on request', async () => {
    const { id, name } = await create();
    const statusOf = async (query: string, as?: string, headers = {}) =>
      (await ask('GET', `/api/agents/${id}/diagnostics${query}`, undefined, as, headers)).status;
    expect(await statusOf('', await world.world.makeKey(id, ['agent:self']))).to.equal(200);
    expect([await statusOf(''), await statusOf('?privileged=1')]).to.deep.equal([403, 200]);
    await world.world.makeNamesake(name);
    const user = await world.world.signIn(name);
    expect(await statusOf('', user)).to.equal(200);
    expect(await statusOf('', user, { 'x-agent-name': 'another-agent' })).to.equal(403);
  });

  it('checks for an unknown agent and the caller first, then rejects unknown hours and sections', async () => {
    const { id } = await create();
    await world.refused(
      'GET',
      `/api/agents/${id}/diagnostics?privileged=1&hours=0`,
      undefined,
      400,
      /hours: .* 1 to 720/,
    );
    await world.refused(
      'GET',
      `/api/agents/${id}/diagnostics?privileged=1&section=x`,
      undefined,
      400,
      /section: .*trends/,
    );
    const body = conforms(diagnosticsResponse, await diagnostics(id, '&hours=720&section=tokens,%20tasks,'));
    expect(Object.keys(body)).to.have.members(['agent', 'timeframe', 'tasks', 'tokens']);
    const all = conforms(diagnosticsResponse, await diagnostics(id, '&section=%20'));
    expect(Object.keys(all), 'blank').to.include.members([...DIAGNOSTICS_SECTIONS]);
    expect((await ask('GET', `/api/agents/${id}/diagnostics?hours=0`)).status).to.equal(403);
    expect((await diagnostics(987_654, '&hours=0')).status).to.equal(404);
  });
});
