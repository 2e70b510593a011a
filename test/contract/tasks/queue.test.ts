import { expect } from 'chai';
import { queueResponse } from '../../../shared/contract/tasks/queue.ts';
import { MASK } from '../../../shared/secrets.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startTasksWorld } from '../../support/worlds/tasks.ts';

describe('the queue of tasks', () => {
  const world = fixture(startTasksWorld);

  describe('GET /api/tasks/queue', () => {
    let operator: string;
    before(async () => {
      operator = await world.world.makeSession({ username: 'polls', display_name: 'Paul Polls', role: 'operator' });
      // Agents of these tests do not get tasks that other tests left in the queue.
      for (const status of ['inbox', 'assigned']) {
        for (let left = 1; left > 0; ) {
          const { tasks } = (await world.ask('GET', `/api/tasks?limit=100&status=${status}`)).body;
          left = tasks.length;
          const parked = tasks.map(({ id }: { id: number }) => ({ id, status: 'backlog' }));
          if (left > 0) await world.ask('PUT', '/api/tasks', { tasks: parked });
        }
      }
    });
    const { ask } = world;
    const poll = async (agent: string, more = '', as?: string) =>
      conforms(queueResponse, await ask('GET', `/api/tasks/queue?agent=${agent}${more}`, undefined, as));

    it('claims the most urgent task, then the next due, then the oldest, and shows it at once', async () => {
      const agent = world.fresh();
      const make = (priority: string, due_date?: number) =>
        world.task({ priority, due_date, assigned_to: agent }).then(({ id }) => id);
      const low = await make('low', 5);
      const [medium, late] = [await make('medium'), await make('medium', 4_000_000_000)];
      const [soon, critical] = [await make('medium', 1_000), await make('critical')];
      const younger = await make('medium');
      const order: number[] = [];
      for (let n = 0; n < 6; n++) {
        const now = Math.floor(Date.now() / 1000);
        const { task, reason, timestamp, ...rest } = await poll(agent);
        expect([reason, rest.agent]).to.deep.equal(['assigned', agent]);
        expect(timestamp).to.be.closeTo(now, 10);
        expect(task).not.to.have.any.keys('project_name', 'project_prefix', 'ticket_ref');
        const { project_name, project_prefix, ticket_ref, ...shown } = await world.taskNow(task.id);
        expect(shown).to.deep.equal(task);
        expect(shown).to.include({ status: 'in_progress', assigned_to: agent });
        order.push(task.id);
        await ask('PUT', `/api/tasks/${task.id}`, { status: 'review' });
      }
      expect(order).to.deep.equal([critical, soon, late, medium, younger, low]);
      expect(await poll(agent)).to.include({ task: null, reason: 'no_tasks_available' });
    });

    it('returns the task in progress, unless the agent wants more', async () => {
      const agent = world.fresh();
      const [first, second] = [await world.task({ assigned_to: agent }), await world.task({ assigned_to: agent })];
      expect((await poll(agent)).task.id).to.equal(first.id);
      const again = await poll(agent);
      expect([again.reason, again.task.id]).to.deep.equal(['continue_current', first.id]);
      expect((await poll(agent, '&max_capacity=2')).task.id).to.equal(second.id);
      expect(await poll(agent, '&max_capacity=2')).to.include({ reason: 'at_capacity', task: null });
      const newest = await poll(agent, '&max_capacity=20');
      expect([newest.reason, newest.task.id]).to.deep.equal(['continue_current', second.id]);
    });

    it('records an activity and an event in the history, and sends a frame', async () => {
      const agent = world.fresh();
      const { id } = await world.task({ title: 'Paint the door' });
      await poll(agent);
      expect(await world.frame('task.status_changed', id)).to.deep.include({
        status: 'in_progress',
        previous_status: 'inbox',
        assigned_to: agent,
        reason: 'claimed',
        workspace_id: 1,
      });
      const [activity] = await world.activities('task_claimed', id);
      expect(activity).to.deep.include({
        entity_type: 'task',
        actor: 'api',
        description: `${agent} claimed task "Paint the door"`,
        metadata: { agent, oldStatus: 'inbox', newStatus: 'in_progress', previous_assignee: null },
      });
      const { history } = (await ask('GET', `/api/tasks/${id}?include=history`)).body;
      expect(history[0]).to.deep.include({ type: 'TaskClaimed', actor: 'api' });
    });

    it('uses the agent name from the header or the key if the query has none', async () => {
      const agent = world.fresh();
      const named = (name: string, query = '') =>
        ask('GET', `/api/tasks/queue${query}`, undefined, undefined, { 'x-agent-name': name });
      conforms(queueResponse, await named(agent));
      expect((await named(agent)).body.agent).to.equal(agent);
      expect((await named(agent, '?agent=%20')).body.agent).to.equal(agent);
      expect((await named(agent, '?agent=%20bob%20')).body.agent).to.equal('bob');
      const id = await world.world.makeAgent(agent);
      const key = await world.world.makeKey(id, ['operator']);
      expect(conforms(queueResponse, await ask('GET', '/api/tasks/queue', undefined, key)).agent).to.equal(agent);
    });

    it('rejects a caller that speaks for one agent and polls for another', async () => {
      const id = await world.world.makeAgent(world.fresh('bound'));
      const key = await world.world.makeKey(id, ['operator']);
      expect((await ask('GET', '/api/tasks/queue?agent=other', undefined, key)).status).to.equal(403);
      const people = { 'x-agent-name': 'one' };
      expect((await ask('GET', '/api/tasks/queue?agent=two', undefined, operator, people)).status).to.equal(403);
      expect((await ask('GET', '/api/tasks/queue?agent=two', undefined, operator)).status).to.equal(200);
      const viewer = await world.world.makeKey(id, ['viewer']);
      expect((await ask('GET', '/api/tasks/queue', undefined, viewer)).status).to.equal(403);
    });

    it('rejects invalid parameters', async () => {
      const refused = (query: string, says: RegExp) =>
        world.refused('GET', `/api/tasks/queue${query}`, undefined, 400, says);
      await refused('', /agent: is missing/);
      await refused('?agent=', /agent: is missing/);
      for (const capacity of ['0', '21', '-1', '1.5', '2x', '%201', '', '99999999999999999999'])
        await refused(`?agent=a&max_capacity=${capacity}`, /max_capacity: must be a whole number from 1 to 20/);
      await refused(`?agent=${'a'.repeat(101)}`, /agent/);
    });

    it('hides secrets from all but admins, in new and in current tasks', async () => {
      const agent = world.fresh();
      await world.task({ assigned_to: agent, metadata: { api_key: 'sk-very-secret-value' } });
      for (const reason of ['assigned', 'continue_current']) {
        const { task, ...rest } = await poll(agent, '', operator);
        expect(rest.reason).to.equal(reason);
        expect(task.metadata).to.deep.equal({ api_key: MASK });
      }
      expect((await poll(agent)).task.metadata).to.deep.equal({ api_key: 'sk-very-secret-value' });
    });

    it('claims nothing for a page of another origin or a HEAD request', async () => {
      const agent = world.fresh();
      const { id } = await world.task({ assigned_to: agent });
      const path = `/api/tasks/queue?agent=${agent}`;
      for (const headers of [
        { origin: 'https://evil.example' },
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
      ] as Record<string, string>[])
        expect((await ask('GET', path, undefined, operator, headers)).status, JSON.stringify(headers)).to.equal(403);
      const head = await ask('HEAD', path, undefined, operator);
      expect([head.status, head.headers.get('allow')]).to.deep.equal([405, 'GET']);
      expect((await world.taskNow(id)).status).to.equal('assigned');
      const own = await ask('GET', path, undefined, operator, { 'sec-fetch-site': 'same-origin' });
      expect(own.body.task.id).to.equal(id);
    });
  });

  describe('recurring tasks', () => {
    it('are rejected with an invalid schedule, on creation and on update', async () => {
      const { id } = await world.task();
      for (const cron_expr of ['daily', '61 * * * *']) {
        const body = { title: 'x', metadata: { recurrence: { cron_expr, enabled: true } } };
        for (const [method, path] of [
          ['POST', '/api/tasks'],
          ['PUT', `/api/tasks/${id}`],
        ] as const)
          await world.refused(method, path, body, 400, /metadata\.recurrence\.cron_expr: /);
      }
    });
  });
});
