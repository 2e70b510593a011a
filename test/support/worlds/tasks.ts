/** A service with the means that the tests of tasks share: short ways to make tasks, and to see what became of them. */
import { createProject, updateProject } from '../../../commands/projects/changes.ts';
import { notificationsProjection } from '../../../projections/monitoring/notifications.ts';
import { tables } from '../../../queries/reads.ts';
import type { TaskRecord } from '../../../shared/contract/tasks/tasks.ts';
import { bodyOf, type Reply } from '../service.ts';
import { testOrigin } from '../world.ts';
import { startAgentsWorld } from './agents.ts';

export type TasksWorld = Awaited<ReturnType<typeof startTasksWorld>>;

export async function startTasksWorld(env: Record<string, string> = {}) {
  const world = await startAgentsWorld(env);
  const { core } = world.world.service;
  return {
    ...world,
    /** Creates a task; `as` as in `ask`. */
    task: async (fields: object = {}, as?: string): Promise<TaskRecord> =>
      bodyOf(await world.ask('POST', '/api/tasks', { title: world.fresh('task'), ...fields }, as), 201).task,
    /** The task as GET shows it to an admin. */
    taskNow: async (id: number): Promise<TaskRecord> => (await world.ask('GET', `/api/tasks/${id}`)).body.task,
    async approve(id: number): Promise<void> {
      bodyOf(await world.ask('POST', '/api/quality-review', { taskId: id, status: 'approved', notes: 'as agreed' }));
    },
    /** Makes a project, without HTTP. Gives its id. */
    async project(name: string, ticketPrefix: string, githubRepo?: string): Promise<number> {
      const slug = name.toLowerCase();
      const fields = { name, slug, ticket_prefix: ticketPrefix, github_repo: githubRepo ?? null, description: null };
      return (await createProject(core.commands, { origin: testOrigin }, { ...fields, deadline: null, color: null }))
        .id;
    },
    async renameProject(id: number, name: string, ticketPrefix: string): Promise<void> {
      await updateProject(core.commands, { origin: testOrigin }, id, { name, ticket_prefix: ticketPrefix });
    },
    /** Events on the stream of a task. */
    eventsOf: (id: number) => core.store.readStream(`task-1-${id}`),
    /** Notifications of one recipient, oldest first. */
    toldTo: (recipient: string) =>
      tables(core.reads, notificationsProjection)
        .selectFrom('notifications')
        .select(['type', 'source_id', 'title'])
        .where('workspace_id', '=', 1)
        .where('recipient', '=', recipient)
        .orderBy('position')
        .orderBy('id')
        .execute(),
    /** Waits for the n-th frame of a type about a task and gives the last of them. */
    async frame(type: string, id: number, count = 1): Promise<Reply['body']> {
      await world.stream.until(() => world.framesOf(type, id).length >= count);
      return world.framesOf(type, id).at(-1)?.data;
    },
  };
}
