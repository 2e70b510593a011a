/**
 * Many pollers at once: every task goes to one of them, none is lost, and no agent gets more than it asked for. In one
 * process, and in two on one PostgreSQL, where every other request goes to the other process.
 */
import { expect } from 'chai';
import { taskStream } from '../../../commands/tasks/tasks.ts';
import { taskStatusChanged } from '../../../shared/events/tasks/changes.ts';
import { placeOf, taskCreated } from '../../../shared/events/tasks/tasks.ts';
import { fixture } from '../../support/fixture.ts';
import { describeWith } from '../../support/needs.ts';
import { bodyOf, call, startTestService, startTwo, type TestService } from '../../support/service.ts';
import { TASK } from '../../support/tasks.ts';
import { testOrigin } from '../../support/world.ts';

describe('Task queue: concurrent polls', function () {
  this.timeout(400_000);
  const one = fixture(() => startTestService());
  races(() => [one], 100);
});

describeWith('TEST_DATABASE_URL', 'Task queue: concurrent polls in two processes', function () {
  this.timeout(400_000);
  const two = fixture(() => startTwo());
  races(() => two.services, 1_000);
});

function races(services: () => readonly TestService[], count: number): void {
  const processOf = (n: number) => services()[n % services().length] as TestService;
  const poll = async (n: number, agent: string, capacity = 1) =>
    bodyOf(await call(processOf(n), 'GET', `/api/tasks/queue?agent=${agent}&max_capacity=${capacity}`)) as {
      reason: string;
      task: { id: number } | null;
    };
  const context = () => ({ origin: testOrigin });

  /** Tasks of the queue, without HTTP. Gives their ids in the order of the queue. */
  async function fill(tasks: number, assignedTo: string | null = null): Promise<number[]> {
    const { commands } = processOf(0).service.core;
    const first = await commands.counters.take('task', tasks);
    const ids = Array.from({ length: tasks }, (_, n) => first + n);
    const status = assignedTo === null ? 'inbox' : 'assigned';
    await Promise.all(
      ids.map((taskId) =>
        commands.record(taskStream(1, taskId), context(), [
          taskCreated.draft({
            task_id: taskId,
            task: { ...TASK, project_ticket_no: taskId, status, assigned_to: assignedTo },
            source: 'api',
          }),
        ]),
      ),
    );
    return ids;
  }

  /** The agent is done with a task and hands it in, without HTTP. */
  async function handIn(n: number, taskId: number, agent: string): Promise<void> {
    const before = { ...placeOf(TASK), status: 'in_progress', assigned_to: agent };
    const after = { ...before, status: 'review' };
    const moved = { task_id: taskId, title: TASK.title, before, after, cause: 'bulk', completed_at: null } as const;
    await processOf(n).service.core.commands.record(taskStream(1, taskId), context(), [taskStatusChanged.draft(moved)]);
  }

  it(`50 agents share ${count} tasks: each task is claimed once, and none is lost`, async () => {
    const ids = await fill(count);
    const got: number[] = [];
    await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        const agent = `worker-${n}`;
        for (let turn = n; ; turn++) {
          const { reason, task } = await poll(turn, agent);
          if (!task) {
            expect(reason).to.equal('no_tasks_available');
            return;
          }
          expect(reason).to.equal('assigned');
          got.push(task.id);
          await handIn(turn, task.id, agent);
        }
      }),
    );
    expect(got.sort((a, b) => a - b)).to.deep.equal(ids);
    const claims = new Map<string, number>();
    for await (const events of processOf(0).service.core.eventLog.readAll()) {
      for (const { stream, type } of events)
        if (type === 'TaskClaimed') claims.set(stream, (claims.get(stream) ?? 0) + 1);
    }
    expect(claims.size).to.equal(count);
    expect([...claims.values()].every((one) => one === 1)).to.equal(true);
  });

  it('one agent gets its tasks in order', async () => {
    const ids = await fill(20, 'steady');
    const got: (number | undefined)[] = [];
    for (const [n] of ids.entries()) {
      const { task } = await poll(n, 'steady');
      got.push(task?.id);
      await handIn(n, task?.id as number, 'steady');
    }
    // Made at the same moment: by id.
    expect(got).to.deep.equal(ids);
  });

  it('concurrent polls of one agent stay within its capacity', async () => {
    for (const [round, capacity] of [1, 1, 3, 3].entries()) {
      const agent = `eager-${round}`;
      await fill(10, agent);
      const got = await Promise.all(Array.from({ length: 12 }, (_, n) => poll(n, agent, capacity)));
      const assigned = got.flatMap(({ reason, task }) => (reason === 'assigned' && task ? [task.id] : []));
      expect(new Set(assigned).size).to.equal(capacity);
      expect(assigned).to.have.length(capacity);
      const now = await call(processOf(round), 'GET', `/api/tasks?assigned_to=${agent}&status=in_progress`);
      expect(now.body.tasks.map(({ id }: { id: number }) => id)).to.have.members(assigned);
    }
  });
}
