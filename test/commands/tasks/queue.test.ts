/** The queue: claims decided purely, and polls of several processes on one log in memory. */
import { expect } from 'chai';
import fc from 'fast-check';
import { requeueStaleTasks } from '../../../commands/schedules/tasks/queue.ts';
import {
  createTaskQueue,
  decideClaim,
  decideRequeue,
  type TaskQueue,
  type TaskQueueParts,
} from '../../../commands/tasks/queue.ts';
import { recordOf, type TaskState, taskDecider, taskStream } from '../../../commands/tasks/tasks.ts';
import type { StaleTask, TaskQueueReads } from '../../../queries/tasks/queue.ts';
import { priorityRank } from '../../../shared/contract/tasks/tasks.ts';
import { LogUnavailableError } from '../../../shared/errors.ts';
import { taskCommented } from '../../../shared/events/tasks/comments.ts';
import { taskClaimed } from '../../../shared/events/tasks/queue.ts';
import { placeOf, type TaskData, taskCreated } from '../../../shared/events/tasks/tasks.ts';
import type { Locks } from '../../../shared/ports/locks.ts';
import { nextTurn } from '../../../shared/waiting.ts';
import { type Draft, givenFor, sample } from '../../support/kit.ts';
import { gate, type MemoryWorld, memoryWorld } from '../../support/memory-world.ts';
import { runs } from '../../support/runs.ts';
import { at, claimed, created, deleted, placed, requeued, statusSet, TASK, updated } from '../../support/tasks.ts';
import { testOrigin } from '../../support/world.ts';

const given = givenFor(taskDecider);

describe('queue: decisions', () => {
  it('a claim assigns the task to the agent and starts it', () => {
    given(created()).when(decideClaim, 'ada').then(claimed());
    const state = given(created(), claimed()).state;
    expect(state.task).to.deep.include({ status: 'in_progress', assigned_to: 'ada' });
    expect(state.subscribers).to.deep.equal(['Ann', 'ada']);
    const own = given(created({ status: 'assigned', assigned_to: 'ada' }));
    own.when(decideClaim, 'ada').then(
      taskClaimed.draft({
        task_id: 7,
        title: TASK.title,
        agent: 'ada',
        ...placed({ status: 'assigned', assigned_to: 'ada' }, { status: 'in_progress' }),
      }),
    );
  });

  it('a claim names the agent by its id, if it is registered', () => {
    const [event] = decideClaim(given(created()).state, 'ada', 5);
    expect(event?.data).to.deep.include({
      after: { ...placeOf(TASK), status: 'in_progress', assigned_to: 'ada', assignee_id: 5 },
    });
    const earlier = given(created({ status: 'assigned', assigned_to: 'ada', assignee_id: 4 })).state;
    expect(decideClaim(earlier, 'ada', 5), 'of an earlier agent of the name').to.deep.equal([]);
  });

  it('a task cannot be claimed if it is deleted, has another assignee or another status', () => {
    given().when(decideClaim, 'ada').then();
    given(created(), deleted()).when(decideClaim, 'ada').then();
    given(created({ assigned_to: 'bob', status: 'assigned' }))
      .when(decideClaim, 'ada')
      .then();
    given(created({ assigned_to: 'Ada', status: 'assigned' }))
      .when(decideClaim, 'ada')
      .then();
    for (const status of ['backlog', 'awaiting_owner', 'in_progress', 'review', 'quality_review', 'done', 'failed'])
      expect(decideClaim(given(created({ status })).state, 'ada'), status).to.deep.equal([]);
  });
});

describe('queue: tasks of inactive agents', () => {
  const decide = (stale: { since?: number; known?: boolean }, ...drafts: readonly Draft[]) =>
    decideRequeue(given(created(), claimed(), ...drafts).state, {
      agent: 'ada',
      known: true,
      since: at(50),
      comment_id: 9,
      ...stale,
    });
  /** What the scheduler writes below the task. */
  const said = (content: string) =>
    sample(taskCommented, { task_id: 7, title: TASK.title, comment_id: 9, author: 'scheduler', content });

  it('wait for any agent if they were claimed from the shared queue, and for their agent if they were assigned to it', () => {
    const waits = 'while it worked on the task, which waits in the queue again (attempt 1 of 5).';
    expect(decide({})).to.deep.equal([requeued(1, { known: false }), said(`The agent ada went offline ${waits}`)]);
    const own = { status: 'assigned', assigned_to: 'ada' };
    const started = taskClaimed.draft({
      task_id: 7,
      title: TASK.title,
      agent: 'ada',
      ...placed(own, { status: 'in_progress' }),
    });
    const stale = { agent: 'ada', known: true, since: at(50), comment_id: 9 };
    expect(decideRequeue(given(created(own), started).state, stale)[0]).to.deep.equal(requeued());
    // Claimed from the queue, then assigned to another agent by a person.
    const reassigned = given(created(), claimed(), updated({ status: 'in_progress', assigned_to: 'bob' })).state;
    expect(decideRequeue(reassigned, { ...stale, agent: 'bob' })[0]?.data).to.have.nested.property(
      'after.assigned_to',
      'bob',
    );
    expect(decide({ known: false })).to.deep.equal([
      requeued(1, { known: false }),
      said(`There is no agent ada any more ${waits}`),
    ]);
    expect(given(created(), claimed(), requeued()).state.task).to.deep.include({
      status: 'assigned',
      assigned_to: 'ada',
      dispatch_attempts: 1,
      error_message: null,
    });
    expect(given(created(), claimed(), requeued(1, { known: false })).state.task.assigned_to).to.equal(null);
  });

  it('fail at the fifth attempt', () => {
    const tries = (count: number) =>
      Array.from({ length: count }, (_, n) => [requeued(n + 1), claimed()]).flat() as readonly Draft[];
    expect(decide({}, ...tries(3))[0]).to.deep.equal(requeued(4, { known: false }));
    expect(decide({}, ...tries(4))).to.deep.equal([
      requeued(5),
      said('The agent ada went offline while it worked on the task. After 5 attempts the task has failed.'),
    ]);
    expect(decide({ known: false }, ...tries(4))[0]).to.deep.equal(requeued(5, { known: false }));
    expect(given(created(), claimed(), ...tries(4), requeued(5)).state.task).to.deep.include({
      status: 'failed',
      assigned_to: 'ada',
      error_message: 'The agent ada went offline while it worked on the task; that was attempt 5.',
    });
  });

  it('are left alone if they have changed since', () => {
    expect(decide({ since: at(2) })).to.have.length(2);
    expect(decide({ since: at(1) })).to.deep.equal([]);
    expect(decide({}, statusSet('in_progress', 'review'))).to.deep.equal([]);
    expect(decide({}, updated({ status: 'in_progress', assigned_to: 'bob' }))).to.deep.equal([]);
    expect(decide({}, deleted())).to.deep.equal([]);
  });

  it('are found page by page, and each is decided on the log', async () => {
    const now = 1_750_000_000_000;
    let clock = now - 3_600_000;
    const world = memoryWorld(() => clock);
    const commands = world.process();
    for (let taskId = 1; taskId <= 250; taskId++) {
      const task = { ...TASK, status: 'in_progress', assigned_to: 'ada' };
      if (taskId === 250) clock = now;
      await commands.record(taskStream(1, taskId), { origin: testOrigin }, [
        taskCreated.draft({ task_id: taskId, task, source: 'api' }),
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

const NEVER = Number.POSITIVE_INFINITY;
/** Compares tasks in the order of the queue. */
const urgentFirst = (a: TaskState, b: TaskState): number =>
  priorityRank(a.task.priority) - priorityRank(b.task.priority) ||
  Math.sign((a.task.due_date ?? NEVER) - (b.task.due_date ?? NEVER) || 0) ||
  a.created_at - b.created_at ||
  a.id - b.id;

/** The tasks after so many events, in the order of the queue. */
function statesIn(world: MemoryWorld, events = world.written().length): TaskState[] {
  const found = new Map<string, TaskState>();
  for (const [at, { stream, type, data }] of world.written().slice(0, events).entries())
    found.set(stream, taskDecider.evolve(found.get(stream) ?? taskDecider.initial, { type, data, at: 1_000 * at }));
  return [...found.values()].filter(({ id }) => id > 0).sort(urgentFirst);
}

/** What read models say that show everything up to a position. @param shown by default the whole log */
function readsOf(world: MemoryWorld, shown: () => number = () => world.written().length): TaskQueueReads {
  return {
    async look(polls, limit) {
      const all = statesIn(world, shown());
      const waiting = all.filter(({ task }) => ['assigned', 'inbox'].includes(task.status));
      const agents = new Set([null, ...polls.map(({ agent }) => agent)]);
      const fronts = [...agents].flatMap((agent) =>
        waiting.filter((t) => t.task.assigned_to === agent).slice(0, limit),
      );
      return {
        agents: polls.map(({ workspace, agent }) => {
          const own = all.filter(({ task }) => task.status === 'in_progress' && task.assigned_to === agent);
          const [newest] = own.sort((a, b) => b.updated_at - a.updated_at);
          return { id: null, count: own.length, newest: newest ? recordOf(newest, workspace) : null };
        }),
        waiting: fronts
          .sort(urgentFirst)
          .map(({ id, task }) => ({ workspace: polls[0]?.workspace ?? 0, id, agent: task.assigned_to })),
      };
    },
  };
}

describe('queue: polls', () => {
  let world: MemoryWorld;
  beforeEach(() => {
    world = memoryWorld();
  });
  /** A process whose read models show what is in the log when they are asked. */
  const process = (more: Partial<TaskQueueParts> = {}): TaskQueue =>
    createTaskQueue({ commands: world.process(), reads: readsOf(world), locks: world.locks, ...more });
  const poll = (queue: TaskQueue, agent = 'ada', maxCapacity = 1) => queue.poll(context(), { agent, maxCapacity });

  async function fill(...tasks: readonly Partial<TaskData>[]): Promise<void> {
    const commands = world.process();
    for (const [at, fields] of tasks.entries()) {
      const taskId = at + 1;
      const draft = taskCreated.draft({ task_id: taskId, task: { ...TASK, ...fields }, source: 'api' });
      await commands.record(taskStream(1, taskId), context(), [draft]);
    }
  }
  /** The agents of the claims in the log, and their tasks. */
  const claims = () =>
    world.written().flatMap(({ type, stream, data }) => (type === taskClaimed.type ? [[data.agent, stream]] : []));

  it('claim tasks in order, and return the current task if there is one', async () => {
    await fill({}, { status: 'done' }, {}, { assigned_to: 'bob', status: 'assigned' });
    const queue = process({ reads: readsOf(world) });
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

  it('detect without a lock that no task waits or that the agent is at its limit', async () => {
    await fill({}, { assigned_to: 'bob', status: 'assigned' });
    const noLocks = { isAlone: false, holding: () => expect.fail('it took a turn') };
    expect((await poll(process())).task?.id).to.equal(1);
    const queue = process({ locks: noLocks });
    expect((await poll(queue)).reason).to.equal('continue_current');
    expect((await poll(queue, 'ada', 2)).task?.id, 'nothing else waits for it').to.equal(1);
    expect(await poll(queue, 'cyn')).to.deep.equal({ task: null, reason: 'no_tasks_available' });
  });

  it('try the next candidate if other agents are faster, even beyond one page', async () => {
    await fill(...Array.from({ length: 40 }, () => ({})));
    const [behind, other] = [readsOf(world, () => 40), process()];
    for (let n = 0; n < 39; n++) await poll(other, `quick-${n}`);
    const got = await poll(process({ reads: behind }));
    expect([got.reason, got.task?.id]).to.deep.equal(['assigned', 40]);
    // Others claim what it finds, each time, until nothing is left.
    let looks = 0;
    const reads = readsOf(world, () => (++looks <= 4 ? 40 : world.written().length));
    const none = { task: null, reason: 'no_tasks_available' };
    expect(await poll(process({ reads }), 'cyn')).to.deep.equal(none);
  });

  it('fail with BUSY if other agents are quicker for too long', async () => {
    let next = 1_000;
    const endless: TaskQueueReads = {
      look: async (polls, limit) => ({
        agents: polls.map(() => ({ id: null, count: 0, newest: null })),
        waiting: Array.from({ length: limit }, () => ({ workspace: 1, id: next++, agent: null })),
      }),
    };
    const refusal = await poll(process({ reads: endless, patienceMs: 50 })).catch((error) => error);
    expect([refusal.status, refusal.extras.code]).to.deep.equal([409, 'BUSY']);
    expect(world.written()).to.deep.equal([]);
  });

  it('from three processes share the tasks, each task once', async () => {
    await fill(...Array.from({ length: 60 }, () => ({})));
    const processes = [process(), process(), process()];
    const got = await Promise.all(
      Array.from({ length: 60 }, (_, n) => poll(processes[n % 3] as TaskQueue, `agent-${n}`)),
    );
    const ids = got.map(({ task }) => task?.id);
    expect(new Set(ids).size).to.equal(60);
    expect(claims()).to.have.length(60);
  });

  it('wait for a claim in progress, then take the task if the claim failed', async () => {
    for (const fails of [true, false]) {
      world = memoryWorld();
      await fill({});
      const held = gate();
      const queue = process({ reads: readsOf(world) });
      world.beforeAppend = async () => {
        world.beforeAppend = async () => undefined;
        await held.wait();
        if (fails) throw new LogUnavailableError('on purpose');
      };
      const first = poll(queue).catch((error) => error);
      await held.reached;
      let answered = false;
      const second = poll(queue, 'bob').finally(() => {
        answered = true;
      });
      for (let n = 0; n < 20; n++) await nextTurn();
      expect(answered, 'it has answered before it can know').to.equal(false);
      held.open();
      expect((await second).reason).to.equal(fails ? 'assigned' : 'no_tasks_available');
      expect(await first).to.deep.include(fails ? { status: 503 } : { reason: 'assigned' });
      expect(claims()).to.deep.equal([[fails ? 'bob' : 'ada', taskStream(1, 1)]]);
    }
  });

  for (const capacity of [1, 3]) {
    it(`of one agent in several processes stay within ${capacity}, and keep the tasks that they get`, async () => {
      for (let round = 0; round < 8; round++) {
        world = memoryWorld();
        await fill(...Array.from({ length: 12 }, () => ({})));
        const processes = [process(), process(), process()];
        const polls = Array.from({ length: 9 }, (_, n) => poll(processes[n % 3] as TaskQueue, 'ada', capacity));
        const got = await Promise.all(polls);
        const assigned = got.filter(({ reason }) => reason === 'assigned');
        expect(assigned, JSON.stringify(got)).to.have.length(capacity);
        expect(claims()).to.have.deep.members(assigned.map(({ task }) => ['ada', taskStream(1, task?.id ?? 0)]));
        for (const { task } of got) if (task) expect(assigned.map((one) => one.task?.id)).to.include(task.id);
      }
    });
  }

  it('look once, and together, in a process that is alone', async () => {
    await fill(...Array.from({ length: 40 }, () => ({})));
    const all = readsOf(world);
    const looks: number[] = [];
    const reads: TaskQueueReads = {
      look(polls, limit) {
        looks.push(polls.length);
        return all.look(polls, limit);
      },
    };
    const queue = process({ reads, locks: { ...world.locks, isAlone: true } });
    const got = await Promise.all(Array.from({ length: 32 }, (_, n) => poll(queue, `agent-${n}`)));
    expect(got.map(({ task }) => task?.id)).to.deep.equal(Array.from({ length: 32 }, (_, n) => n + 1));
    expect(looks).to.deep.equal([32]);
    looks.length = 0;
    await Promise.all(Array.from({ length: 300 }, (_, n) => poll(queue, `more-${n}`)));
    expect(Math.max(...looks), 'polls of one look').to.equal(128);
  });

  it('leave out the tasks that polls of the look before take, also when their claims end before the rows arrive', async () => {
    await fill(...Array.from({ length: 20 }, () => ({})));
    const all = readsOf(world);
    const first = gate();
    const second = gate();
    let looks = 0;
    const reads: TaskQueueReads = {
      async look(polls, limit) {
        const look = ++looks;
        const found = await all.look(polls, limit);
        if (look === 1) await first.wait();
        if (look === 2) await second.wait();
        return found;
      },
    };
    const queue = process({ reads, locks: { ...world.locks, isAlone: true } });
    const one = poll(queue, 'ada');
    await first.reached;
    const two = poll(queue, 'bob');
    first.open();
    expect((await one).task?.id).to.equal(1);
    await second.reached;
    second.open();
    expect((await two).task?.id).to.equal(2);
    expect(looks).to.equal(2);
  });

  it('look before they take the lock, unless the last poll of the agent got a task', async () => {
    await fill({}, {}, {});
    const steps: string[] = [];
    const all = readsOf(world);
    const queue = process({
      reads: {
        look(polls, limit) {
          steps.push('look');
          return all.look(polls, limit);
        },
      },
      locks: {
        isAlone: false,
        holding(name, work) {
          steps.push('lock');
          return world.locks.holding(name, work);
        },
      },
    });
    const stepsOf = async (capacity: number) => {
      steps.length = 0;
      const { reason } = await poll(queue, 'ada', capacity);
      return [...steps, reason];
    };
    expect(await stepsOf(1)).to.deep.equal(['look', 'lock', 'look', 'assigned']);
    expect(await stepsOf(2)).to.deep.equal(['lock', 'look', 'assigned']);
    expect(await stepsOf(2)).to.deep.equal(['lock', 'look', 'at_capacity']);
    expect(await stepsOf(2)).to.deep.equal(['look', 'at_capacity']);
  });

  it('get what they would get one after another, each agent from its own process or all from one', async () => {
    const tasks = fc.array(
      fc.record({
        priority: fc.constantFrom('low', 'medium', 'high', 'critical'),
        due_date: fc.constantFrom(null, 1_800_000_000, 1_900_000_000),
        status: fc.constantFrom('inbox', 'assigned', 'assigned', 'done'),
        assigned_to: fc.constantFrom(null, null, 'agent-0', 'agent-1', 'agent-2', 'another'),
      }),
      { maxLength: 30 },
    );
    const polls = fc.array(fc.record({ agent: fc.nat(5), process: fc.nat(1) }), { minLength: 1, maxLength: 24 });
    const capacities = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 6, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(tasks, polls, capacities, async (fields, wave, limits) => {
        world = memoryWorld();
        await fill(...fields);
        const processes = [process(), process()];
        const begun = world.written().length;
        const ask = async ({ agent, process: n }: { agent: number; process: number }) => ({
          agent: `agent-${agent}`,
          ...(await poll(processes[n] as TaskQueue, `agent-${agent}`, limits[agent])),
        });

        // One poll of each agent, in one process: as if they were one after another.
        const first = [...new Set(wave.map(({ agent }) => agent))];
        const got = await Promise.all(first.map((agent) => ask({ agent, process: 0 })));
        const left = statesIn(world, begun)
          .filter(({ task }) => task.status !== 'done')
          .sort(urgentFirst);
        for (const { agent, task } of got) {
          const mine = left.findIndex(({ task: { assigned_to: whose } }) => whose === null || whose === agent);
          expect(task?.id).to.equal(mine < 0 ? undefined : left.splice(mine, 1)[0]?.id);
        }

        // Any polls, in two processes.
        const all = [...got, ...(await Promise.all(wave.map(ask)))];
        const inHand = new Map<string, Set<number>>();
        for (const { agent, task, reason } of all) {
          if (reason !== 'assigned' || !task) continue;
          inHand.set(agent, (inHand.get(agent) ?? new Set()).add(task.id));
        }
        const given = [...inHand.values()].flatMap((ids) => [...ids]);
        expect(new Set(given).size, 'tasks of two agents').to.equal(given.length);
        expect(claims()).to.have.deep.members(
          [...inHand].flatMap(([agent, ids]) => [...ids].map((id) => [agent, taskStream(1, id)])),
        );
        for (const [agent, ids] of inHand) expect(ids.size).to.be.at.most(limits[Number(agent.slice(-1))] as number);
        const still = statesIn(world).filter(({ task }) => ['assigned', 'inbox'].includes(task.status));
        for (const { agent, reason } of all.slice(got.length)) {
          if (reason !== 'no_tasks_available') continue;
          expect(still.filter(({ task }) => task.assigned_to === null || task.assigned_to === agent)).to.have.length(0);
        }
      }),
      { numRuns: runs(25, 60) },
    );
  });

  it('claim nothing if the lock is lost before the claim', async () => {
    await fill({});
    const locks: Locks = { isAlone: false, holding: (_name, work) => work(AbortSignal.abort()) };
    const refusal = await poll(process({ locks })).catch((error) => error);
    expect([refusal.status, refusal.extras.code]).to.deep.equal([503, 'LOG_UNAVAILABLE']);
    expect(claims()).to.deep.equal([]);
  });
});
