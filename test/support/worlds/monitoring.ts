/** What the tests of the group share. */
import { type TaskData, taskCreated } from '../../../shared/events/tasks/tasks.ts';
import { call, type TestService } from '../service.ts';
import { TASK } from '../tasks.ts';
import { testOrigin } from '../world.ts';

export const makeAgent = async (base: TestService, name: string): Promise<{ id: number }> =>
  (await call(base, 'POST', '/api/agents', { name, role: 'coder' })).body.agent;

let tasks = 900_000;
/** A task as its first event says, in workspace 1 unless another is given. Gives its id. */
export async function makeTask({ service }: TestService, fields: Partial<TaskData>, workspace = 1): Promise<number> {
  const taskId = ++tasks;
  await service.core.commands.record(`task-${workspace}-${taskId}`, { origin: { ...testOrigin, workspace } }, [
    taskCreated.draft({ taskId, task: { ...TASK, ...fields }, source: 'api' }),
  ]);
  return taskId;
}
