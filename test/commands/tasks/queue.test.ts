/** The queue: claims decided purely, and polls of several processes on one log in memory. */
import { expect } from 'chai';
import { requeueStaleTasks } from '../../../commands/policies/tasks/queue.ts';
import {
  createTaskQueue,
  decideClaim,
  decideRelease,
  decideRequeue,
  type TaskQueue,
} from '../../../commands/tasks/queue.ts';
import { recordOf, taskDecider, taskStream } from '../../../commands/tasks/tasks.ts';
import { taskCommented } from '../../../shared/events/tasks/comments.ts';
import { taskClaimed, taskReleased } from '../../../shared/events/tasks/queue.ts';
import { placeOf, type TaskData, taskCreated } from '../../../shared/events/tasks/tasks.ts';
import type { StaleTask, TaskQueueReads } from '../../../shared/ports/queue.ts';
import { type Draft, stateAfter } from '../../support/kit.ts';
import { gate, type MemoryWorld, memoryWorld } from '../../support/memory-world.ts';
import { at, claimed, created, deleted, placed, requeued, statusSet, TASK, updated } from '../../support/tasks.ts';
import { testOrigin } from '../../support/world.ts';

const given = (...drafts: readonly Draft[]) => stateAfter(taskDecider, ...drafts);

describe('queue: decisions', () => {
  it('a claim puts the task into the hands of the agent', () => {
    expect(decideClaim(given(created()), 'ada')).to.deep.equal([claimed()]);
    const state = given(created(), claimed());
    expect(state.task).to.deep.include({ status: 'in_progress', assignedTo: 'ada' });
    expect(state.subscribers).to.deep.equal(['Ann', 'ada']);
    const own = given(created({ status: 'assigned', assignedTo: 'ada' }));
    expect(decideClaim(own, 'ada')).to.deep.equal([
      taskClaimed.draft({
        taskId: 7,
        title: TASK.title,
        agent: 'ada',
        ...placed({ status: 'assigned', assignedTo: 'ada' }, { status: 'in_progress' }),
      }),
    ]);
  });

  it('a task is not claimed that is gone, in other hands, or in another status', () => {
    expect(decideClaim(given(), 'ada')).to.deep.equal([]);
    expect(decideClaim(given(created(), deleted()), 'ada')).to.deep.equal([]);
    expect(decideClaim(given(created({ assignedTo: 'bob', status: 'assigned' })), 'ada')).to.deep.equal([]);
    expect(decideClaim(given(created({ assignedTo: 'Ada', status: 'assigned' })), 'ada')).to.deep.equal([]);
    for (const status of ['backlog', 'awaiting_owner', 'in_progress', 'review', 'quality_review', 'done', 'failed'])
      expect(decideClaim(given(created({ status })), 'ada'), status).to.deep.equal([]);
  });

  it('a release puts the task back where it was, unless it has moved on', () => {
    const release = (...drafts: readonly Draft[]) => decideRelease(given(...drafts), 'ada', placeOf(TASK));
    const [draft] = release(created(), claimed());
    expect(draft).to.deep.equal(
      taskReleased.draft({
        taskId: 7,
        title: TASK.title,
        agent: 'ada',
        ...placed({ status: 'in_progress', assignedTo: 'ada' }, { status: 'inbox', assignedTo: null }),
      }),
    );
    expect(given(created(), claimed(), draft as Draft).task).to.deep.include({ status: 'inbox', assignedTo: null });
    expect(release(created(), claimed(), statusSet('in_progress', 'review'))).to.deep.equal([]);
    expect(release(created(), claimed(), deleted())).to.deep.equal([]);
    expect(release(created())).to.deep.equal([]);
  });
});

describe('queue: tasks of silent agents', () => {
  const decide = (stale: { since?: number; known?: boolean }, ...drafts: readonly Draft[]) =>
    decideRequeue(given(created(), claimed(), ...drafts), {
      agent: 'ada',
      known: true,
      since: at(50),
      commentId: 9,
      ...stale,
    });
  /** What the scheduler writes below the task. */
  const said = (content: string) =>
    taskCommented.draft({
      taskId: 7,
      title: TASK.title,
      commentId: 9,
      parentId: null,
      depth: 0,
      author: 'scheduler',
      content,
      mentions: [],
    });

  it('wait for the agent again, or for anybody when there is no such agent', () => {
    const waits = 'while it worked on the task, which waits in the queue again (attempt 1 of 5).';
    expect(decide({})).to.deep.equal([requeued(), said(`The agent ada went offline ${waits}`)]);
    expect(decide({ known: false })).to.deep.equal([
      requeued(1, { known: false }),
      said(`There is no agent ada any more ${waits}`),
    ]);
    expect(given(created(), claimed(), requeued()).task).to.deep.include({
      status: 'assigned',
      assignedTo: 'ada',
      dispatchAttempts: 1,
      errorMessage: null,
    });
    expect(given(created(), claimed(), requeued(1, { known: false })).task.assignedTo).to.equal(null);
  });

  it('fail at the fifth time', () => {
    const tries = (count: number) =>
      Array.from({ length: count }, (_, n) => [requeued(n + 1), claimed()]).flat() as readonly Draft[];
    expect(decide({}, ...tries(3))[0]).to.deep.equal(requeued(4));
    expect(decide({}, ...tries(4))).to.deep.equal([
      requeued(5),
      said('The agent ada went offline while it worked on the task. After 5 attempts the task has failed.'),
    ]);
    expect(decide({ known: false }, ...tries(4))[0]).to.deep.equal(requeued(5, { known: false }));
    expect(given(created(), claimed(), ...tries(4), requeued(5)).task).to.deep.include({
      status: 'failed',
      assignedTo: 'ada',
      errorMessage: 'The agent ada went offline while it worked on the task; that was attempt 5.',
    });
  });

  it('stay when somebody has changed them since', () => {
    expect(decide({ since: at(2) })).to.have.length(2);
    expect(decide({ since: at(1) })).to.deep.equal([]);
    expect(decide({}, statusSet('in_progress', 'review'))).to.deep.equal([]);
    expect(decide({}, updated({ status: 'in_progress', assignedTo: 'bob' }))).to.deep.equal([]);
    expect(decide({}, deleted())).to.deep.equal([]);
  });

  it('are looked for page by page, each decided on the log', async () => {
    const now = 1_750_000_000_000;
    let clock = now - 3_600_000;
    const world = memoryWorld(() => clock);
    const commands = world.process();
    for (let taskId = 1; taskId <= 250; taskId++) {
      const task = { ...TASK, status: 'in_progress', assignedTo: 'ada' };
      if (taskId === 250) clock = now;
      await commands.record(taskStream(1, taskId), { origin: testOrigin }, [
        taskCreated.draft({ taskId, task, source: 'api' }),
      ]);
    }
    const all = Array.from({ length: 250 }, (_, n): StaleTask => {
      return { tenant: 1, workspace: 1, id: n + 1, agent: 'ada', known: true, updatedAt: n };
    });
    const asked: number[] = [];
    const stale = async (since: number, after: StaleTask | undefined, limit: number) => {
      asked.push(since);
      return all.filter(({ id }) => id > (after?.id ?? 0)).slice(0, limit);
    };
    clock = now;
    const sweep = () => requeueStaleTasks({ commands, reads: { stale }, staleMinutes: 10, now: () => now });
    expect(await sweep(), 'one of them was changed a moment ago').to.deep.equal(all.slice(0, 249).map(({ id }) => id));
    expect(asked).to.deep.equal([now / 1_000 - 600, now / 1_000 - 600]);
    expect(await sweep()).to.deep.equal([]);
    const last = world.written().at(-1);
    expect(last?.type).to.equal('TaskCommented');
  });
});

const context = () => ({ origin: testOrigin });

/** What a read model that keeps up with the log would say. */
function readsOf(world: MemoryWorld): TaskQueueReads {
  const tasks = () => {
    const found = new Map<string, { state: ReturnType<typeof given>; claim: number }>();
    for (const [at, { stream, type, data }] of world.written().entries()) {
      const before = found.get(stream) ?? { state: taskDecider.initial, claim: 0 };
      const state = taskDecider.evolve(before.state, { type, data, at: 1_000 * at });
      found.set(stream, { state, claim: type === taskClaimed.type ? at + 1 : before.claim });
    }
    return [...found.values()].filter(({ state }) => state.id > 0);
  };
  const working = (agent: string) =>
    tasks().filter(({ state: { task } }) => task.status === 'in_progress' && task.assignedTo === agent);
  return {
    inProgress: async (workspace, agent, limit) =>
      working(agent)
        .sort((a, b) => b.state.updatedAt - a.state.updatedAt)
        .slice(0, limit)
        .map(({ state }) => recordOf(state, workspace)),
    waiting: async (_workspace, agent, passedOver, limit) =>
      tasks()
        .map(({ state }) => state)
        .filter((state) => decideClaim(state, agent).length > 0 && !passedOver.includes(state.id))
        .slice(0, limit)
        .map(({ id }) => id),
    earlier: async (_workspace, agent, task, position, limit) =>
      Math.min(limit, working(agent).filter(({ state, claim }) => state.id !== task && claim < position).length),
  };
}

describe('queue: polls', () => {
  let world: MemoryWorld;
  let reads: TaskQueueReads;
  beforeEach(() => {
    world = memoryWorld();
    reads = readsOf(world);
  });
  const process = (seen: TaskQueueReads = reads): TaskQueue =>
    createTaskQueue({ commands: world.process(), reads: seen });
  const poll = (queue: TaskQueue, agent = 'ada', maxCapacity = 1) => queue.poll(context(), { agent, maxCapacity });

  async function fill(...tasks: readonly Partial<TaskData>[]): Promise<void> {
    const commands = world.process();
    for (const [at, fields] of tasks.entries()) {
      const taskId = at + 1;
      const draft = taskCreated.draft({ taskId, task: { ...TASK, ...fields }, source: 'api' });
      await commands.record(taskStream(1, taskId), context(), [draft]);
    }
  }
  /** Agents by task, as the log has it. */
  const hands = () => {
    const now = new Map<string, string>();
    for (const { stream, type, data } of world.written()) {
      if (type === taskClaimed.type) now.set(stream, String(data.agent));
      if (type === taskReleased.type) now.delete(stream);
    }
    return [...now.values()];
  };

  it('claims in order, and goes on with what there is', async () => {
    await fill({}, { status: 'done' }, {}, { assignedTo: 'bob', status: 'assigned' });
    const queue = process();
    const first = await poll(queue);
    expect(first).to.deep.include({ reason: 'assigned' });
    expect(first.task).to.deep.include({ id: 1, status: 'in_progress', assigned_to: 'ada' });
    expect(first.task).not.to.have.any.keys('project_name', 'project_prefix', 'ticket_ref');
    const again = await poll(queue);
    expect([again.reason, again.task?.id]).to.deep.equal(['continue_current', 1]);
    const second = await poll(queue, 'ada', 2);
    expect([second.reason, second.task?.id]).to.deep.equal(['assigned', 3]);
    expect(await poll(queue, 'ada', 2)).to.deep.equal({ task: null, reason: 'at_capacity' });
    const third = await poll(queue, 'ada', 3);
    expect([third.reason, third.task?.id], 'nothing waits').to.deep.equal(['continue_current', 3]);
    expect((await poll(queue, 'bob')).task?.id).to.equal(4);
    expect(await poll(queue, 'cyn')).to.deep.equal({ task: null, reason: 'no_tasks_available' });
  });

  it('goes on to the next candidate when others are quicker, also beyond one page', async () => {
    await fill(...Array.from({ length: 40 }, () => ({})));
    const [stale, other] = [await reads.waiting(1, 'ada', [], 100), process()];
    for (let n = 0; n < 39; n++) await poll(other, `quick-${n}`);
    const behind: TaskQueueReads = {
      ...reads,
      waiting: async (_workspace, _agent, passedOver, limit) =>
        stale.filter((id) => !passedOver.includes(id)).slice(0, limit),
    };
    const got = await poll(process(behind));
    expect([got.reason, got.task?.id]).to.deep.equal(['assigned', 40]);
    expect(await poll(process(behind), 'cyn')).to.deep.equal({ task: null, reason: 'no_tasks_available' });
  });

  it('gives up when a bounded number of candidates went to others', async () => {
    let pages = 0;
    const endless: TaskQueueReads = {
      ...reads,
      waiting: async (_workspace, _agent, passedOver, limit) => {
        pages++;
        return Array.from({ length: limit }, (_, n) => 1_000 + passedOver.length + n);
      },
    };
    expect(await poll(process(endless))).to.deep.equal({ task: null, reason: 'no_tasks_available' });
    expect(pages).to.equal(8);
  });

  it('many pollers of three processes share the tasks, each task once', async () => {
    await fill(...Array.from({ length: 60 }, () => ({})));
    const processes = [process(), process(), process()];
    const got = await Promise.all(
      Array.from({ length: 60 }, (_, n) => poll(processes[n % 3] as TaskQueue, `agent-${n}`)),
    );
    const ids = got.map(({ task }) => task?.id);
    expect(new Set(ids).size).to.equal(60);
    expect(hands()).to.have.length(60);
  });

  it('polls of one agent in one process take turns: one claims, the others go on with that', async () => {
    await fill({}, {}, {});
    const queue = process();
    const got = await Promise.all(Array.from({ length: 5 }, () => poll(queue)));
    expect(got.map(({ reason }) => reason).sort()).to.deep.equal([
      'assigned',
      ...Array.from({ length: 4 }, () => 'continue_current'),
    ]);
    expect(new Set(got.map(({ task }) => task?.id)).size).to.equal(1);
  });

  for (const capacity of [1, 3]) {
    it(`polls of one agent in several processes at once stay within ${capacity}`, async () => {
      for (let round = 0; round < 8; round++) {
        world = memoryWorld();
        reads = readsOf(world);
        await fill(...Array.from({ length: 12 }, () => ({})));
        const polls = Array.from({ length: 6 }, () => poll(process(), 'ada', capacity));
        const got = await Promise.all(polls);
        expect(hands()).to.have.length(capacity);
        const assigned = got.filter(({ reason }) => reason === 'assigned');
        expect(assigned, JSON.stringify(got)).to.have.length(capacity);
        for (const { task } of assigned)
          expect((await reads.inProgress(1, 'ada', 20)).map(({ id }) => id)).to.include(task?.id);
      }
    });
  }

  it('of two claims for one place, the one that is first in the log stays, whoever looks first', async () => {
    await fill({}, {});
    const held = gate();
    const late: TaskQueueReads = {
      ...reads,
      // It saw nothing in progress, and its first candidate is the other task.
      waiting: async () => {
        await held.wait();
        return [2];
      },
    };
    const second = poll(process(late));
    await held.reached;
    const first = await poll(process());
    expect([first.reason, first.task?.id]).to.deep.equal(['assigned', 1]);
    held.open();
    const got = await second;
    expect([got.reason, got.task?.id]).to.deep.equal(['continue_current', 1]);
    expect(hands()).to.deep.equal(['ada']);
  });
});
