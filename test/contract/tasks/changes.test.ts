import { expect } from 'chai';
import { bulkStatusResponse, updatedTaskResponse } from '../../../shared/contract/tasks/tasks.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf } from '../../support/service.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startTasksWorld } from '../../support/worlds/tasks.ts';

describe('changes of tasks', () => {
  const world = fixture(startTasksWorld);

  const { ask } = world;
  const put = async (id: number, body: object) =>
    conforms(updatedTaskResponse, await ask('PUT', `/api/tasks/${id}`, body));
  const updates = async (id: number) =>
    (await ask('GET', '/api/activities?type=task_updated&limit=50')).body.activities.filter(
      ({ entity_id }: { entity_id: number }) => entity_id === id,
    );

  describe('PUT /api/tasks/{id}', () => {
    it('sets the given fields and keeps the rest', async () => {
      const task = await world.task({ priority: 'high', tags: ['a'], metadata: { a: 1 }, status: 'review' });
      const { task: after, unchanged } = await put(task.id, { description: 'more', resolution: 'found' });
      expect(unchanged).to.equal(undefined);
      expect(after).to.deep.equal({ ...task, description: 'more', resolution: 'found', updated_at: after.updated_at });
      expect(await world.taskNow(task.id)).to.deep.equal(after);
      expect(await world.frame('task.updated', task.id)).to.deep.include(after);
      // No event reports these fields.
      expect(await updates(task.id)).to.deep.equal([]);
    });

    it('records tracked changes in one activity', async () => {
      const task = await world.task({ assigned_to: 'ada' });
      await put(task.id, { title: 'New', status: 'review', assigned_to: 'eve', outcome: 'partial', tags: ['x'] });
      const [activity] = await updates(task.id);
      const changes = ['status: assigned → review', 'assigned: ada → eve', 'title updated', 'outcome: unset → partial'];
      expect(activity).to.deep.include({
        actor: 'api',
        metadata: {
          changes,
          oldValues: { title: task.title, status: 'assigned', priority: 'medium', assigned_to: 'ada' },
          newValues: { title: 'New', status: 'review', assigned_to: 'eve' },
        },
      });
      expect(activity.description).to.include(changes.join(', '));
      await put(task.id, { priority: 'low', assigned_to: '' });
      const [second] = await updates(task.id);
      expect(second.metadata.changes).to.deep.equal(['assigned: eve → unassigned', 'priority: medium → low']);
    });

    it('notifies newly mentioned users and agents', async () => {
      const [one, two] = [await world.create(), await world.create()];
      const { id } = await world.task({ description: `@${one.name}` });
      await put(id, { description: `@${one.name} and @${two.name}` });
      expect((await world.toldTo(one.name)).map(({ type }) => type)).to.deep.equal(['mention']);
      expect((await world.toldTo(two.name)).map(({ type }) => type)).to.deep.equal(['mention']);
      await world.refused('PUT', `/api/tasks/${id}`, { description: '@who-is-that' }, 400, /Unknown mentions/);
      // Whether there is such a task comes first.
      await world.refused('PUT', '/api/tasks/999999', { description: '@who-is-that' }, 404);
      // An omitted text is not checked: the users that it mentions may be deleted.
      await ask('DELETE', `/api/agents/${two.id}`);
      expect((await put(id, { title: 'later' })).task.title).to.equal('later');
    });

    it('reports when nothing changes', async () => {
      const task = await world.task();
      for (const body of [{}, { created_by: 'me' }, { unknown: 1 }])
        expect(await put(task.id, body)).to.deep.equal({ task, unchanged: true });
      expect(await world.eventsOf(task.id)).to.have.length(1);
      // The same value again is a change that changes nothing.
      expect((await put(task.id, { title: task.title })).unchanged).to.equal(undefined);
      await world.refused('PUT', '/api/tasks/999999', {}, 404);
    });

    it('moves a task to another project under the next ticket number', async () => {
      const project = await world.project('Doors', 'DOOR');
      const task = await world.task();
      const { task: moved } = await put(task.id, { project_id: project });
      expect(moved).to.include({ project_id: project, project_name: 'Doors', ticket_ref: 'DOOR-001' });
      expect(await world.taskNow(task.id)).to.deep.equal(moved);
      expect((await put(task.id, { project_id: project })).task.ticket_ref).to.equal('DOOR-001');
      const [activity] = await updates(task.id);
      expect(activity.metadata.changes).to.deep.equal(['project: General → Doors']);
      await put(task.id, { project_id: task.project_id });
      expect((await put(task.id, { project_id: project })).task.ticket_ref).to.equal('DOOR-002');
      await world.refused('PUT', `/api/tasks/${task.id}`, { project_id: 999_999 }, 400, /project_id/);
      // A project that was renamed meanwhile shows under its new name.
      await world.renameProject(project, 'Gates', 'GATE');
      const renamed = { project_name: 'Gates', project_prefix: 'GATE', ticket_ref: 'GATE-002' };
      expect((await put(task.id, { title: 'x' })).task).to.include(renamed);
      expect(await world.frame('task.updated', task.id, 5)).to.include({ title: 'x', ...renamed });
    });

    it('rejects null and values out of bounds', async () => {
      const { id } = await world.task();
      for (const [body, says] of [
        [{ title: '' }, /title/],
        [{ title: null }, /title/],
        [{ assigned_to: null }, /assigned_to/],
        [{ due_date: null }, /due_date/],
        [{ status: 'gone' }, /status/],
        [{ metadata: 'x' }, /metadata/],
      ] as const)
        await world.refused('PUT', `/api/tasks/${id}`, body, 400, says);
    });
  });

  describe('PUT /api/tasks', () => {
    const many = (tasks: readonly object[]) => ask('PUT', '/api/tasks', { tasks });

    it('sets the status of many tasks and skips unknown ones', async () => {
      const [one, two] = [await world.task(), await world.task({ status: 'review' })];
      const reply = await many([
        { id: one.id, status: 'backlog' },
        { id: two.id, status: 'review' },
        { id: 999_999, status: 'review' },
      ]);
      conforms(bulkStatusResponse, reply);
      expect(reply.body).to.deep.equal({ success: true, updated: 2 });
      expect((await world.taskNow(one.id)).status).to.equal('backlog');
      const frame = await world.frame('task.status_changed', one.id);
      expect(Object.keys(frame).sort()).to.deep.equal(['id', 'status', 'updated_at', 'workspace_id']);
      expect(await world.frame('task.status_changed', two.id)).to.include({ status: 'review' });
      const [activity] = await updates(one.id);
      expect(activity).to.deep.include({ actor: 'api', metadata: { oldStatus: 'inbox', newStatus: 'backlog' } });
      expect(await updates(two.id)).to.deep.equal([]);
    });

    it('changes nothing if one task lacks its approval, and names it', async () => {
      const [good, bad] = [await world.task(), await world.task()];
      await world.approve(good.id);
      await ask('PUT', `/api/tasks/${good.id}`, { status: 'review' });
      const wanted = [good, bad].map(({ id }) => ({ id, status: 'done' }));
      const body = bodyOf(await many([...wanted, { id: good.id, status: 'backlog' }]), 403);
      expect(body.error).to.match(new RegExp(`Task ${bad.id} .*Aegis`));
      expect((await world.taskNow(good.id)).status).to.equal('review');
      expect((await many(wanted.slice(0, 1))).body.updated).to.equal(1);
      expect(await world.taskNow(good.id)).to.include({ status: 'done' });
      expect(
        (
          await many([
            { id: good.id, status: 'review' },
            { id: good.id, status: 'backlog' },
          ])
        ).body.updated,
      ).to.equal(1);
      expect((await world.taskNow(good.id)).status).to.equal('backlog');
    });

    it('rejects an invalid list of statuses', async () => {
      const item = { id: 1, status: 'review' };
      for (const [body, says] of [
        [{}, /tasks/],
        [{ tasks: [] }, /tasks/],
        [{ tasks: Array(101).fill(item) }, /tasks/],
        [{ tasks: [{ id: 'x', status: 'review' }] }, /tasks\.0\.id/],
        [{ tasks: [item, { id: 2 }] }, /tasks\.1\.status/],
      ] as const)
        await world.refused('PUT', '/api/tasks', body, 400, says);
    });
  });

  describe('x-agent-name on a task in progress', () => {
    const as = (agent: string) => ({ 'x-agent-name': agent });
    const HELD = 'HELD_BY_ANOTHER_AGENT';

    it('names another agent than the assignee: 409 that names the assignee, and nothing changes', async () => {
      const [holder, other] = [(await world.create()).name, (await world.create()).name];
      const { id } = await world.task({ assigned_to: holder });
      await put(id, { status: 'in_progress' });
      const before = await world.taskNow(id);
      const writes: readonly (readonly [string, string, object?])[] = [
        ['PUT', `/api/tasks/${id}`, { status: 'review', resolution: 'mine' }],
        ['PUT', `/api/tasks/${id}`, { assigned_to: other }],
        ['PUT', '/api/tasks', { tasks: [{ id, status: 'review' }] }],
        ['POST', `/api/tasks/${id}/comments`, { content: 'It is done.' }],
        ['POST', '/api/quality-review', { taskId: id, status: 'rejected', notes: 'Do it again.' }],
        ['POST', '/api/quality-review', { taskId: id, status: 'approved', notes: 'It is done.' }],
        ['DELETE', `/api/tasks/${id}`],
      ];
      for (const [method, path, body] of writes) {
        const reply = await ask(method, path, body, undefined, as(other));
        expect([reply.status, reply.body.code], `${method} ${path}`).to.deep.equal([409, HELD]);
        expect(reply.body.error, path).to.include(`The agent ${holder} has this task`).and.include(other);
      }
      expect(await world.taskNow(id)).to.deep.equal(before);
    });

    it('names the assignee, or is absent: the task is changed', async () => {
      const [holder, other] = [(await world.create()).name, (await world.create()).name];
      const { id } = await world.task({ assigned_to: holder });
      // Another agent may change what is not in progress.
      const change = (body: object, headers?: Record<string, string>) =>
        ask('PUT', `/api/tasks/${id}`, body, undefined, headers);
      expect((await change({ priority: 'high' }, as(other))).status).to.equal(200);
      expect((await change({ status: 'in_progress' }, as(holder))).status).to.equal(200);
      expect((await change({ priority: 'low' }, as(holder))).status).to.equal(200);
      expect((await change({ priority: 'medium' })).status).to.equal(200);
      expect((await change({ status: 'review' }, as(holder))).status).to.equal(200);
      expect((await change({ priority: 'low' }, as(other))).status).to.equal(200);
    });
  });
});
