/** What the tests of the group share. */
import { type TaskData, taskCreated } from '../../../shared/events/tasks/tasks.ts';
import { call, type Reply, type TestService } from '../service.ts';
import { TASK } from '../tasks.ts';
import { testOrigin } from '../world.ts';
import { cookieOf, PASSWORD } from './auth.ts';

export const makeAgent = async (base: TestService, name: string): Promise<{ id: number }> =>
  (await call(base, 'POST', '/api/agents', { name, role: 'coder' })).body.agent;

let tasks = 900_000;
/** A task as its first event says, in workspace 1 unless another is given. Gives its id. */
export async function makeTask({ service }: TestService, fields: Partial<TaskData>, workspace = 1): Promise<number> {
  const taskId = ++tasks;
  await service.core.commands.record(`task-${workspace}-${taskId}`, { origin: { ...testOrigin, workspace } }, [
    taskCreated.draft({ task_id: taskId, task: { ...TASK, ...fields }, source: 'api' }),
  ]);
  return taskId;
}

/** A user with a session: the headers of its requests. */
export async function makeUser(base: TestService, username: string, role: string): Promise<Record<string, string>> {
  const expectDone = (reply: Reply) => {
    if (reply.status > 201) throw new Error(`${username}: ${JSON.stringify(reply.body)}`);
    return reply;
  };
  const body = { username, password: PASSWORD };
  expectDone(await call(base, 'POST', '/api/auth/users', { ...body, role }));
  return { cookie: cookieOf(expectDone(await call(base, 'POST', '/api/auth/login', body))), 'x-api-key': '' };
}

/** An agent with a key: the headers of its requests, and its id. */
export async function makeKey(base: TestService, name: string, scopes: readonly string[]) {
  const { id } = await makeAgent(base, name);
  const { body } = await call(base, 'POST', `/api/agents/${id}/keys`, { scopes });
  return { id, headers: { 'x-api-key': body.api_key as string } };
}
