/** A service with the means that the tests of tasks share: short ways to make tasks, and to see what became of them. */
import { expect } from 'chai';
import { createProject, updateProject } from '../../../commands/projects/changes.ts';
import { notificationsProjection } from '../../../projections/monitoring/notifications.ts';
import { tables } from '../../../queries/reads.ts';
import type { TaskRecord } from '../../../shared/contract/tasks/tasks.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import { testOrigin } from '../world.ts';
import { type AgentsWorld, startAgentsWorld } from './agents.ts';

export interface TasksWorld extends AgentsWorld {
  /** Creates a task; `as` as in `ask`. */
  task(fields?: object, as?: string): Promise<TaskRecord>;
  /** The task as GET shows it to an admin. */
  taskNow(id: number): Promise<TaskRecord>;
  approve(id: number): Promise<void>;
  /** Makes a project, without HTTP. Gives its id. */
  project(name: string, ticketPrefix: string, githubRepo?: string): Promise<number>;
  /** Gives a project another name and prefix. */
  renameProject(id: number, name: string, ticketPrefix: string): Promise<void>;
  /** Events on the stream of a task. */
  eventsOf(id: number): Promise<readonly DomainEvent[]>;
  /** What one recipient was told, oldest first. */
  toldTo(recipient: string): Promise<readonly { type: string; source_id: number | null; title: string }[]>;
  /** Waits for the n-th frame of a type about a task and gives the last of them. */
  // biome-ignore lint/suspicious/noExplicitAny: frames are looked into freely.
  frame(type: string, id: number, count?: number): Promise<any>;
}

export async function startTasksWorld(env: Record<string, string> = {}): Promise<TasksWorld> {
  const world = await startAgentsWorld(env);
  const { core } = world.world.service;
  return {
    ...world,
    async task(fields = {}, as) {
      const reply = await world.ask('POST', '/api/tasks', { title: world.fresh('task'), ...fields }, as);
      expect(reply.status, JSON.stringify(reply.body)).to.equal(201);
      return reply.body.task;
    },
    taskNow: async (id) => (await world.ask('GET', `/api/tasks/${id}`)).body.task,
    async approve(id) {
      const body = { taskId: id, status: 'approved', notes: 'as agreed' };
      const reply = await world.ask('POST', '/api/quality-review', body);
      expect(reply.status, JSON.stringify(reply.body)).to.equal(200);
    },
    async project(name, ticketPrefix, githubRepo) {
      const slug = name.toLowerCase();
      const fields = { name, slug, ticket_prefix: ticketPrefix, github_repo: githubRepo ?? null, description: null };
      return (await createProject(core.commands, { origin: testOrigin }, { ...fields, deadline: null, color: null }))
        .id;
    },
    async renameProject(id, name, ticketPrefix) {
      await updateProject(core.commands, { origin: testOrigin }, id, { name, ticket_prefix: ticketPrefix });
    },
    eventsOf: (id) => core.store.readStream(`task-1-${id}`),
    toldTo: (recipient) =>
      tables(core.reads, notificationsProjection)
        .selectFrom('notifications')
        .select(['type', 'source_id', 'title'])
        .where('workspace_id', '=', 1)
        .where('recipient', '=', recipient)
        .orderBy('position')
        .orderBy('id')
        .execute(),
    async frame(type, id, count = 1) {
      await world.stream.until(() => world.framesOf(type, id).length >= count);
      return world.framesOf(type, id).at(-1)?.data;
    },
  };
}
