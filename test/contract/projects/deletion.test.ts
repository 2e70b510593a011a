/** Tasks of projects, and where they go when a project is deleted for good; on the service of `projects.test.ts`. */
import { expect } from 'chai';
import { projectStream } from '../../../commands/projects/projects.ts';
import { takeTickets } from '../../../commands/projects/tickets.ts';
import { taskStream } from '../../../commands/tasks/tasks.ts';
import { deletedProjectResponse, projectTasksResponse } from '../../../shared/contract/projects/projects.ts';
import type { TaskRecord } from '../../../shared/contract/tasks/tasks.ts';
import { projectDeletionBegun } from '../../../shared/events/projects/projects.ts';
import { type TaskData, taskCreated } from '../../../shared/events/tasks/tasks.ts';
import { fixture } from '../../support/fixture.ts';
import { TASK } from '../../support/tasks.ts';
import { testOrigin } from '../../support/world.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startProjectsWorld } from '../../support/worlds/projects.ts';

describe('tasks of projects, and their deletion', function () {
  this.timeout(120_000);
  const world = fixture(startProjectsWorld);
  const { ask } = world;

  const projectOf = async (id: number) => (await ask('GET', `/api/projects/${id}`)).body.project;
  const tasksOf = async (id: number, query = ''): Promise<TaskRecord[]> =>
    (await ask('GET', `/api/projects/${id}/tasks${query}`)).body.tasks;

  /** A task without the limits of its route. Gives its id. */
  async function makeTask(projectId: number, fields: Partial<TaskData> = {}): Promise<number> {
    const { commands } = world.world.service.core;
    const [taskId, ticketNo] = [await commands.counters.take('task'), await takeTickets(commands, 1, projectId)];
    const task = { ...TASK, ...fields, project_id: projectId, project_ticket_no: ticketNo };
    await commands.record(taskStream(1, taskId), { origin: testOrigin }, [
      taskCreated.draft({ task_id: taskId, task, source: 'api' }),
    ]);
    return taskId;
  }

  describe('tasks', () => {
    it('are counted and listed, newest first, with their ticket numbers', async () => {
      const { id } = await world.createProject({ ticket_prefix: 'MANY' });
      const made = [await makeTask(id), await makeTask(id, { status: 'done', assigned_to: 'ada' }), await makeTask(id)];
      expect(await projectOf(id)).to.include({ task_count: 3, ticket_counter: 3 });
      const body = conforms(projectTasksResponse, await ask('GET', `/api/projects/${id}/tasks`));
      expect(body.project).to.include({ id, ticket_prefix: 'MANY', ticket_counter: 3 });
      expect(body.tasks.map((task: TaskRecord) => task.id)).to.deep.equal([...made].reverse());
      expect(body.tasks.map((task: TaskRecord) => task.ticket_ref)).to.deep.equal(['MANY-003', 'MANY-002', 'MANY-001']);
      expect((await tasksOf(id, '?limit=1&offset=1')).map((task) => task.id)).to.deep.equal([made[1]]);
      // Another prefix holds for all of them at once.
      await ask('PATCH', `/api/projects/${id}`, { ticket_prefix: 'FEW', name: 'Few' });
      expect((await tasksOf(id))[0]).to.include({ ticket_ref: 'FEW-003', project_prefix: 'FEW', project_name: 'Few' });
      const projects: { id: number; task_count: number }[] = (await ask('GET', '/api/projects')).body.projects;
      expect(projects.find((project) => project.id === id)?.task_count).to.equal(3);
    });

    it('show secrets in their metadata to admins only', async () => {
      const { id } = await world.createProject();
      const [viewer] = [await world.world.makeUser({ username: `reader-${id}` })];
      expect(viewer).to.be.above(0);
      await makeTask(id, { metadata: { api_key: 'sk-very-secret-0123456789', note: 'open' } });
      expect((await tasksOf(id))[0]?.metadata).to.deep.equal({ api_key: 'sk-very-secret-0123456789', note: 'open' });
      const reply = await ask('GET', `/api/projects/${id}/tasks`, undefined, await world.world.signIn(`reader-${id}`));
      expect(reply.body.tasks[0].metadata).to.deep.equal({ api_key: '--------', note: 'open' });
    });

    it('require an existing project', async () => {
      await world.refused('GET', '/api/projects/999999/tasks', undefined, 404);
      await world.refused('GET', '/api/projects/x/tasks', undefined, 400);
    });
  });

  describe('DELETE with mode=delete', () => {
    it('moves the tasks to the general project under new numbers, and frees the names', async () => {
      const inGeneral = await makeTask(1);
      const before = (await projectOf(1)).ticket_counter;
      const { id, slug } = await world.createProject({ ticket_prefix: 'GONE', slug: 'gone' });
      await ask('POST', `/api/projects/${id}/agents`, { agent_name: 'ada' });
      const made = await Promise.all(Array.from({ length: 30 }, (_, n) => makeTask(id, { title: `Task ${n}` })));
      const body = conforms(deletedProjectResponse, await ask('DELETE', `/api/projects/${id}?mode=delete`));
      expect(body).to.deep.equal({ success: true, mode: 'delete' });

      for (const path of ['', '/tasks', '/agents'])
        await world.refused('GET', `/api/projects/${id}${path}`, undefined, 404);
      await world.refused('PATCH', `/api/projects/${id}`, { name: 'x' }, 404);
      await world.refused('DELETE', `/api/projects/${id}?mode=delete`, undefined, 404);
      const listed = (await ask('GET', '/api/projects?includeArchived=1')).body.projects;
      expect(listed.map((project: { id: number }) => project.id)).not.to.include(id);

      const general = await tasksOf(1, '?limit=1000');
      expect(general.map((task) => task.id)).to.include.members([...made, inGeneral]);
      expect(new Set(general.map((task) => task.ticket_ref)).size, 'ticket references').to.equal(general.length);
      const moved = general.find((task) => task.id === made[0]);
      expect(moved).to.include({ title: 'Task 0', project_id: 1, project_name: 'General' });
      expect(moved?.project_ticket_no).to.be.above(before);
      expect((await projectOf(1)).ticket_counter).to.be.at.least(before + 30);
      expect(await projectOf(1)).to.include({ task_count: general.length });

      const again = await world.createProject({ ticket_prefix: 'GONE', slug });
      expect(again).to.include({ slug, ticket_counter: 0 });
      expect(again.id).to.be.above(id);
      expect((await projectOf(again.id)).assigned_agents).to.deep.equal([]);
    });

    it('is resumed by the schedule, which also moves a task that was added later', async () => {
      const name = 'Interrupted';
      const { id } = await world.createProject({ name });
      // As after a crash behind the first append.
      await world.world.service.core.commands.record(projectStream(1, id), { origin: testOrigin }, [
        projectDeletionBegun.draft({ project_id: id, name }),
      ]);
      const turn = () => ask('POST', '/api/scheduler', { task_id: 'project_deletions' });
      expect((await turn()).status).to.equal(200);
      await world.createProject({ name });
      const late = await makeTask(id);
      expect((await turn()).status).to.equal(200);
      expect((await tasksOf(1, '?limit=1000')).map((task) => task.id)).to.include(late);
    });
  });
});
