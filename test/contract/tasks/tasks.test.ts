/** Tasks, through HTTP. What stands in the other files of this folder is tried on the same service. */
import { expect } from 'chai';
import { taskResponse, tasksResponse } from '../../../shared/contract/tasks/tasks.ts';
import { MASK } from '../../../shared/secrets.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startTasksWorld } from '../../support/worlds/tasks.ts';

describe('Tasks', () => {
  let operator: string;
  const world = fixture(startTasksWorld);
  before(async () => {
    operator = await world.world.makeSession({ username: 'works', display_name: 'Wanda Works', role: 'operator' });
  });

  const { ask } = world;
  const list = async (query: string, as?: string) =>
    conforms(tasksResponse, await ask('GET', `/api/tasks${query}`, undefined, as));

  describe('POST /api/tasks', () => {
    it('creates a task in the general project, with defaults', async () => {
      const now = Math.floor(Date.now() / 1000);
      const { task } = conforms(taskResponse, await ask('POST', '/api/tasks', { title: 'Mend the roof' }), 201);
      expect(task).to.deep.include({
        title: 'Mend the roof',
        description: null,
        status: 'inbox',
        priority: 'medium',
        assigned_to: null,
        created_by: 'API Access',
        tags: [],
        metadata: {},
        workspace_id: 1,
        outcome: null,
        retry_count: 0,
        completed_at: null,
        dispatch_attempts: 0,
        project_name: 'General',
        project_prefix: 'TASK',
      });
      expect(task.created_at).to.be.closeTo(now, 10).and.to.equal(task.updated_at);
      expect(task.ticket_ref).to.match(/^TASK-\d{3,}$/);
      expect(Number(task.ticket_ref.slice(5))).to.equal(task.project_ticket_no);
      // What was answered is what is read, though it was made without reading.
      expect(await world.taskNow(task.id)).to.deep.equal(task);
      expect(await world.frame('task.created', task.id)).to.deep.include(task);
    });

    it('keeps every field', async () => {
      const fields = {
        title: ' spaces stay ',
        description: 'Long',
        status: 'review',
        priority: 'critical',
        due_date: 4_000_000_000,
        estimated_hours: 1.5,
        actual_hours: 0.25,
        outcome: 'partial',
        error_message: 'e',
        resolution: 'r',
        feedback_rating: 5,
        feedback_notes: 'n',
        retry_count: 2,
        completed_at: 12,
        tags: ['a', 'b'],
        metadata: { implementation_repo: 'x/y', code_location: 'src', deep: { er: [1, null] } },
      };
      const task = await world.task({ ...fields, created_by: 'somebody else' }, operator);
      expect(task).to.deep.include({ ...fields, created_by: 'Wanda Works' });
      expect(await world.taskNow(task.id)).to.deep.equal(task);
    });

    it('sets the status assigned if there is an assignee, unless another status is requested', async () => {
      const named = { assigned_to: ' ada ' };
      expect(await world.task(named)).to.include({ status: 'assigned', assigned_to: 'ada' });
      expect(await world.task({ ...named, status: 'inbox' })).to.include({ status: 'assigned' });
      expect(await world.task({ ...named, status: 'backlog' })).to.include({ status: 'backlog' });
      expect(await world.task({ status: 'assigned' })).to.include({ status: 'assigned', assigned_to: null });
      expect(await world.task({ assigned_to: '  ' })).to.include({ status: 'inbox', assigned_to: null });
    });

    it('rejects unknown mentions without using up a ticket number', async () => {
      const before = await world.task();
      const body = { title: 'x', description: 'Hello @nobody-here and @Nobody-Else.' };
      const reply = await world.refused('POST', '/api/tasks', body, 400, /Unknown mentions.*@nobody-here/);
      expect(reply.body.missing_mentions).to.deep.equal(['nobody-here', 'Nobody-Else.']);
      await world.refused('POST', '/api/tasks', { title: 'x', status: 'done' }, 403, /Aegis/);
      const next = await world.task();
      expect(next.project_ticket_no).to.equal(before.project_ticket_no + 1);
    });

    it('uses the named project if it is active, otherwise the general one', async () => {
      const id = await world.project('Roofs', 'ROOF');
      const own = await world.task({ project_id: id });
      expect(own).to.include({ project_id: id, project_name: 'Roofs', ticket_ref: 'ROOF-001' });
      expect(await world.task({ project_id: 999_999 })).to.include({ project_name: 'General' });
      // A new prefix shows at once, in the record of every task.
      await world.renameProject(id, 'Tiles', 'TILE');
      expect(await world.taskNow(own.id)).to.include({ project_name: 'Tiles', ticket_ref: 'TILE-001' });
    });

    it('rejects invalid input with a message that states the correction', async () => {
      const bad: [object, RegExp][] = [
        [{}, /title/],
        [{ title: '' }, /title/],
        [{ title: 'x'.repeat(501) }, /title/],
        [{ title: 'x', status: 'urgent' }, /status.*inbox/],
        [{ title: 'x', priority: 'urgent' }, /priority.*critical/],
        [{ title: 'x', description: 'x'.repeat(5_001) }, /description/],
        [{ title: 'x', description: null }, /description/],
        [{ title: 'x', due_date: 4_102_444_801 }, /due_date/],
        [{ title: 'x', due_date: '5' }, /due_date/],
        [{ title: 'x', estimated_hours: -1 }, /estimated_hours/],
        [{ title: 'x', feedback_rating: 6 }, /feedback_rating/],
        [{ title: 'x', tags: Array(51).fill('t') }, /tags/],
        [{ title: 'x', tags: ['ok', ''] }, /tags\.1/],
        [{ title: 'x', metadata: [] }, /metadata/],
        [{ title: 'x', metadata: { implementation_repo: '' } }, /metadata\.implementation_repo/],
        [{ title: 'x', metadata: { code_location: 5 } }, /metadata\.code_location/],
        [{ title: 'x', metadata: { a: '\u0000' } }, /metadata/],
        [{ title: 'x', project_id: 0 }, /project_id/],
        [{ title: 'x', outcome: 'fine' }, /outcome/],
      ];
      for (const [body, says] of bad) await world.refused('POST', '/api/tasks', body, 400, says);
    });
  });

  describe('GET /api/tasks', () => {
    it('finds tasks by every filter, newest first, with totals', async () => {
      const mine = world.fresh('lister');
      const tasks = [
        await world.task({ assigned_to: mine, priority: 'low', due_date: 30 }),
        await world.task({ assigned_to: mine, priority: 'critical' }),
        await world.task({ assigned_to: mine, status: 'review', due_date: 20 }),
      ];
      const ids = tasks.map(({ id }) => id);
      const found = async (query: string) => {
        const { tasks: page, total } = await list(`?assigned_to=${mine}${query}`);
        expect(total, query).to.equal(page.length);
        return page.map(({ id }: { id: number }) => ids.indexOf(id));
      };
      expect(await found('')).to.deep.equal([2, 1, 0]);
      expect(await found('&status=review')).to.deep.equal([2]);
      expect(await found('&status=no-such')).to.deep.equal([]);
      expect(await found('&priority=critical')).to.deep.equal([1]);
      expect(await found('&priority=low&status=assigned')).to.deep.equal([0]);
      expect(await found(`&project_id=${tasks[0]?.project_id}`)).to.deep.equal([2, 1, 0]);
      expect(await found('&project_id=999999')).to.deep.equal([]);
      expect(await found('&project_id=abc')).to.deep.equal([2, 1, 0]);
      expect(await found('&order=asc')).to.deep.equal([0, 1, 2]);
      expect(await found('&sort=priority')).to.deep.equal([1, 2, 0]);
      expect(await found('&sort=priority&order=asc')).to.deep.equal([0, 2, 1]);
      expect(await found('&sort=due_date')).to.deep.equal([2, 0, 1]);
      await ask('PUT', `/api/tasks/${ids[0]}`, { due_date: 31 });
      expect(await found('&sort=updated_at')).to.deep.equal([0, 2, 1]);
      await world.refused('GET', '/api/tasks?sort=title', undefined, 400, /sort/);
    });

    it('pages, even to deep offsets, and tolerates odd numbers', async () => {
      const mine = world.fresh('pager');
      for (let n = 0; n < 5; n++) await world.task({ assigned_to: mine });
      const all = (await list(`?assigned_to=${mine}`)).tasks.map(({ id }: { id: number }) => id);
      const two = await list(`?assigned_to=${mine}&limit=2&offset=2`);
      expect(two).to.include({ total: 5, page: 2, limit: 2 });
      expect(two.tasks.map(({ id }: { id: number }) => id)).to.deep.equal(all.slice(2, 4));
      expect(await list(`?assigned_to=${mine}&offset=4000`)).to.deep.include({ tasks: [], total: 5 });
      for (const [query, limit] of [
        ['limit=abc', 50],
        ['limit=0', 1],
        ['limit=-3', 1],
        ['limit=500', 200],
      ] as const)
        expect(await list(`?${query}`)).to.include({ limit, page: 1 });
    });

    it('returns the whole record with comment counts', async () => {
      const task = await world.task();
      const { tasks } = await list('?limit=1');
      expect(tasks[0]).to.deep.equal({ ...task, comment_count: 0 });
    });
  });

  describe('a caller that speaks for an agent', () => {
    it('sees and changes only that agent’s tasks, unless it is an admin', async () => {
      const { id: agentId, name } = await world.create();
      const key = await world.world.makeKey(agentId, ['operator']);
      const adminKey = await world.world.makeKey(agentId, ['admin']);
      const [own, other, nobodys] = [
        await world.task({ assigned_to: name }),
        await world.task({ assigned_to: 'another' }),
        await world.task(),
      ];
      const seen = await list('?assigned_to=another', key);
      expect(seen).to.include({ total: 1 });
      expect(seen.tasks.map(({ id }: { id: number }) => id)).to.deep.equal([own.id]);
      expect((await list('', adminKey)).total).to.be.greaterThan(1);
      for (const task of [other, nobodys]) {
        for (const [method, body] of [['GET'], ['PUT', { title: 'mine' }], ['DELETE']] as const) {
          const reply = await ask(method, `/api/tasks/${task.id}`, body, key);
          expect(reply.status, `${method} ${task.id}`).to.equal(403);
          expect(reply.body.error).to.include(name);
        }
        expect((await ask('GET', `/api/tasks/${task.id}`, undefined, adminKey)).status).to.equal(200);
      }
      expect((await ask('GET', `/api/tasks/${own.id}`, undefined, key)).status).to.equal(200);
      expect((await ask('PUT', `/api/tasks/${own.id}`, { title: 'mine' }, key)).body.task.title).to.equal('mine');
      // Creating is not bound; changes of many are for the key of an agent, and not for who names one.
      expect((await world.task({ title: 'for somebody' }, key)).created_by).to.equal(name);
      const many = { tasks: [{ id: other.id, status: 'review' }] };
      expect((await ask('PUT', '/api/tasks', many, key)).status).to.equal(403);
      const spoken = { 'x-agent-name': name };
      expect((await ask('PUT', '/api/tasks', many, operator, spoken)).body).to.deep.equal({
        success: true,
        updated: 1,
      });
      expect((await ask('GET', `/api/tasks/${other.id}`, undefined, operator, spoken)).status).to.equal(403);
      expect((await ask('DELETE', `/api/tasks/${own.id}`, undefined, operator, spoken)).status).to.equal(200);
    });
  });

  describe('secrets in metadata', () => {
    it('are shown only to admins, kept out of the log, and kept if sent back masked', async () => {
      const secret = `very-private-${world.fresh()}`;
      const task = await world.task({ metadata: { api_key: secret, note: 'open' } }, operator);
      expect(task.metadata).to.deep.equal({ api_key: MASK, note: 'open' });
      const { metadata } = (await ask('GET', `/api/tasks/${task.id}`, undefined, operator)).body.task;
      expect(metadata).to.deep.equal(task.metadata);
      const change = { metadata: { ...metadata, note: 'changed' } };
      const { body } = await ask('PUT', `/api/tasks/${task.id}`, change, operator);
      expect(body.task.metadata).to.deep.equal({ api_key: MASK, note: 'changed' });
      expect((await world.taskNow(task.id)).metadata).to.deep.equal({ api_key: secret, note: 'changed' });
      const history = await ask('GET', `/api/tasks/${task.id}?include=history`, undefined, operator);
      expect(JSON.stringify(history.body)).to.include(MASK).and.not.include(secret);
      const listed = await ask('GET', '/api/tasks?limit=5', undefined, operator);
      expect(JSON.stringify(listed.body)).not.to.include(secret);
      expect(await world.world.rawLog()).not.to.include(secret);
      await world.refused('POST', '/api/tasks', { title: 'x', metadata: { token: MASK } }, 400, /metadata\.token/);
    });
  });

  describe('DELETE /api/tasks/{id}', () => {
    it('deletes the task and its reviews, and keeps its history', async () => {
      const task = await world.task({ assigned_to: 'ada' });
      await ask('POST', '/api/quality-review', { taskId: task.id, status: 'rejected', notes: 'no' });
      expect((await ask('DELETE', `/api/tasks/${task.id}`)).body).to.deep.equal({ success: true });
      await world.refused('GET', `/api/tasks/${task.id}`, undefined, 404);
      await world.refused('DELETE', `/api/tasks/${task.id}`, undefined, 404);
      expect((await ask('GET', `/api/quality-review?taskId=${task.id}`)).body).to.deep.equal({ reviews: [] });
      const [activity] = (await ask('GET', '/api/activities?type=task_deleted&limit=1')).body.activities;
      expect(activity).to.deep.include({
        entity_id: task.id,
        actor: 'api',
        metadata: { title: task.title, status: 'in_progress', assigned_to: 'ada' },
        entity: null,
      });
      expect(await world.frame('task.deleted', task.id)).to.include({ title: task.title, workspace_id: 1 });
    });

    it('rejects invalid ids', async () => {
      for (const method of ['GET', 'PUT', 'DELETE']) {
        await world.refused(method, '/api/tasks/abc', method === 'PUT' ? { title: 'x' } : undefined, 400, /id/);
        await world.refused(method, '/api/tasks/999999', method === 'PUT' ? { title: 'x' } : undefined, 404);
      }
    });
  });
});
