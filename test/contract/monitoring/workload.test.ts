/** Workload: counts, and what follows from them. */
import { expect } from 'chai';
import { recommend, type Signals } from '../../../queries/monitoring/workload.ts';
import { workloadResponse } from '../../../shared/contract/monitoring/workload.ts';
import { fixture } from '../../support/fixture.ts';
import { call, startTestService } from '../../support/service.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { makeAgent, makeTask } from '../../support/worlds/monitoring.ts';

const THRESHOLDS = {
  queue_depth_normal: 20,
  queue_depth_throttle: 50,
  queue_depth_shed: 100,
  busy_agent_ratio_throttle: 0.8,
  busy_agent_ratio_shed: 0.95,
  error_rate_throttle: 0.1,
  error_rate_shed: 0.25,
  recent_window_seconds: 300,
};

describe('GET /api/workload', () => {
  const base = fixture(startTestService);

  const workload = async () => {
    const body = conforms(workloadResponse, await call(base, 'GET', '/api/workload'));
    return workloadResponse.parse(body);
  };

  it('counts tasks and agents, and reflects every change at once', async () => {
    const before = await workload();
    expect(before).to.deep.include({ workspace_id: 1, thresholds: THRESHOLDS });
    expect(before.timestamp).to.be.closeTo(Date.now() / 1000, 60);
    const { id } = await makeAgent(base, 'loader');
    await call(base, 'PUT', `/api/agents/${id}`, { status: 'busy' });
    for (const [status, priority] of [
      ['inbox', 'low'],
      ['assigned', 'high'],
      ['assigned', 'critical'],
      ['in_progress', 'high'],
      ['quality_review', 'medium'],
      ['backlog', 'high'],
      ['awaiting_owner', 'high'],
      ['failed', 'high'],
      ['done', 'high'],
    ] as const) {
      await makeTask(base, { status, priority, assigned_to: status === 'inbox' ? null : 'loader' });
    }
    const after = await workload();
    const grown = (of: (one: typeof after) => number) => of(after) - of(before);
    expect(grown(({ queue }) => queue.total_pending)).to.equal(5);
    expect(grown(({ capacity }) => capacity.active_tasks)).to.equal(4);
    expect(grown(({ capacity }) => capacity.tasks_last_5m)).to.equal(9);
    expect(grown(({ capacity }) => capacity.completions_last_hour)).to.equal(1);
    expect(grown(({ queue }) => queue.by_status.assigned)).to.equal(2);
    expect(grown(({ queue }) => queue.by_status.review)).to.equal(0);
    expect(grown(({ queue }) => queue.by_priority.high)).to.equal(2);
    expect(after.queue.by_priority.urgent).to.equal(0);
    expect(after.queue.oldest_pending_age_seconds).to.be.within(0, 600);
    const { total_pending, estimated_wait_seconds } = after.queue;
    expect(after.queue.estimated_wait_confidence).to.equal('calculated');
    expect(estimated_wait_seconds).to.equal(Math.round((total_pending / after.capacity.completions_last_hour) * 3600));
    expect(grown(({ agents }) => agents.busy)).to.equal(1);
    expect(grown(({ agents }) => agents.total)).to.equal(1);
    expect(after.agents.online).to.equal(after.agents.idle + after.agents.busy);
    expect(after.agents.load_distribution[0]).to.deep.equal({ agent: 'loader', assigned: 2, in_progress: 1 });
    await call(base, 'PUT', `/api/agents/${id}`, { status: 'offline' });
    expect((await workload()).agents.load_distribution.map(({ agent }) => agent)).not.to.include('loader');
  });

  it('bases its recommendation on the most severe signal; without agents, it recommends a pause', () => {
    const calm: Signals = { error_rate: 0, queue_depth: 0, busy_ratio: 0, available: 1 };
    const action = (signals: Partial<Signals>) => {
      const { action: name, submit_ok, suggested_delay_ms, details } = recommend({ ...calm, ...signals }, THRESHOLDS);
      return [name, submit_ok, suggested_delay_ms, details.length];
    };
    expect(action({})).to.deep.equal(['normal', true, 0, 1]);
    expect(action({ queue_depth: 49, busy_ratio: 0.79, error_rate: 0.09 })).to.deep.equal(['normal', true, 0, 1]);
    expect(action({ queue_depth: 50 })).to.deep.equal(['throttle', true, 2_000, 1]);
    expect(action({ busy_ratio: 0.95, queue_depth: 60 })).to.deep.equal(['shed', false, 10_000, 2]);
    expect(action({ error_rate: 0.25, queue_depth: 60, busy_ratio: 0.8 })).to.deep.equal(['shed', false, 10_000, 3]);
    expect(action({ available: 0 })).to.deep.equal(['pause', false, 30_000, 1]);
  });
});
