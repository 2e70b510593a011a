/**
 * The task queue of two API processes, on PostgreSQL and on the cluster: 24 pollers of 6 agents share 300 tasks, in as
 * many rounds as QUEUE_ROUNDS says. Each task goes to one agent and stays with it, and the log has no position at which an
 * agent has more than it asked for.
 */
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { type Commands, createCommands } from '../../commands/handler.ts';
import { taskStream } from '../../commands/tasks/tasks.ts';
import { readConfig } from '../../infra/config.ts';
import { type Core, openCore } from '../../infra/core.ts';
import { createLogger } from '../../infra/logging.ts';
import type { PollReason } from '../../shared/contract/tasks/queue.ts';
import { taskStatusChanged } from '../../shared/events/tasks/changes.ts';
import { placeOf, type TaskPlace, taskCreated } from '../../shared/events/tasks/tasks.ts';
import { BEGINNING } from '../../shared/ports/event-log.ts';
import { needsServer } from '../support/needs.ts';
import { type ServerStores, serverStores, twoApiProcesses } from '../support/service.ts';
import { KEY, startProcesses } from '../support/service-process.ts';
import { TASK } from '../support/tasks.ts';
import { testOrigin } from '../support/world.ts';

const ROUNDS = Number(process.env.QUEUE_ROUNDS ?? 2);
const TASKS = 300;
const POLLERS = 24;
/** How many tasks each agent wants to have. */
const CAPACITIES = [1, 1, 2, 3, 4, 6];
const capacityOf = (agent: number) => CAPACITIES[agent] as number;

interface Poll {
  /** `busy`: other polls of the agent took so long that this one is to be repeated. */
  readonly reason: PollReason | 'busy';
  readonly task: { readonly id: number } | null;
}

const http = new Agent({ keepAlive: true });

const poll = (url: string, agent: string, capacity: number): Promise<Poll> =>
  new Promise((resolve, reject) => {
    const path = `/api/tasks/queue?agent=${agent}&max_capacity=${capacity}`;
    request(url + path, { agent: http, headers: { 'x-api-key': KEY } }, (response) => {
      text(response)
        .then((body) => {
          const answer = JSON.parse(body);
          if (response.statusCode === 200) resolve(answer);
          else if (response.statusCode === 409 && answer.code === 'BUSY') resolve({ reason: 'busy', task: null });
          else throw new Error(`${path} was answered ${response.statusCode}: ${body}`);
        })
        .catch(reject);
    })
      .on('error', reject)
      .end();
  });

for (const stack of ['postgres', 'cluster'] as const) {
  describe(`the task queue with two processes, ${ROUNDS} rounds, on ${stack}`, function () {
    this.timeout(60_000 + ROUNDS * 60_000);
    let stores: ServerStores | undefined;
    let running: Awaited<ReturnType<typeof startProcesses>> | undefined;
    let core: Core | undefined;
    /** Those of the test itself, which wait for no read model. */
    let commands: Commands;

    before(async function () {
      needsServer('TEST_DATABASE_URL', this);
      stores = await serverStores(stack);
      running = await startProcesses(stores.env, twoApiProcesses(stack));
      core = await openCore(readConfig({ ...stores.env, LOG_LEVEL: 'silent' }), createLogger('silent'));
      const { store, counters } = core;
      commands = createCommands({ store, counters });
    });
    after(async () => {
      await core?.close();
      await running?.stop();
      await stores?.close();
    });

    const context = () => ({ origin: testOrigin });

    /** Tasks that anybody may take. */
    async function fill(): Promise<readonly number[]> {
      const first = await commands.counters.take('task', TASKS);
      const ids = Array.from({ length: TASKS }, (_, n) => first + n);
      await Promise.all(
        ids.map((taskId) =>
          commands.record(taskStream(1, taskId), context(), [
            taskCreated.draft({ task_id: taskId, task: { ...TASK, project_ticket_no: taskId }, source: 'api' }),
          ]),
        ),
      );
      return ids;
    }

    async function handIn(taskId: number, agent: string): Promise<void> {
      const before = { ...placeOf(TASK), status: 'in_progress', assigned_to: agent };
      const moved = { task_id: taskId, title: TASK.title, before, after: { ...before, status: 'review' } };
      await commands.record(taskStream(1, taskId), context(), [
        taskStatusChanged.draft({ ...moved, cause: 'bulk', completed_at: null }),
      ]);
    }

    /** What the log says of these tasks: who claimed them, and what must not have happened. */
    async function claimsOf(ids: readonly number[], agents: ReadonlyMap<string, number>) {
      const own = new Map(ids.map((id) => [taskStream(1, id), id]));
      const claims = new Map<number, string[]>();
      const faults: string[] = [];
      const inHand = new Map<string, number>();
      for await (const events of (core as Core).eventLog.readAll({ from: seen })) {
        for (const { stream, type, data, position } of events) {
          seen = position;
          const id = own.get(stream);
          if (id === undefined || type === taskCreated.type) continue;
          const { before, after } = data as { readonly before: TaskPlace; readonly after: TaskPlace };
          if (type === 'TaskClaimed') claims.set(id, [...(claims.get(id) ?? []), String(after.assigned_to)]);
          else if (type !== taskStatusChanged.type) faults.push(`${type} of task ${id} at ${position}`);
          for (const [{ status, assigned_to: assignedTo }, change] of [
            [before, -1],
            [after, 1],
          ] as const) {
            if (status !== 'in_progress' || assignedTo === null) continue;
            const count = (inHand.get(assignedTo) ?? 0) + change;
            inHand.set(assignedTo, count);
            if (count > (agents.get(assignedTo) ?? 0)) faults.push(`${assignedTo} has ${count} tasks at ${position}`);
          }
        }
      }
      return { claims, faults };
    }
    let seen = BEGINNING;

    it('gives each task to one agent for good, and no agent more than it requested', async () => {
      const begun = performance.now();
      const reasons: Record<string, number> = {};
      for (let round = 0; round < ROUNDS; round++) {
        const ids = await fill();
        const agents = new Map(CAPACITIES.map((capacity, n) => [`agent-${round}-${n}`, capacity]));
        const names = [...agents.keys()];
        /** The agents to which polls gave each task. */
        const shown = new Map<number, Set<string>>(ids.map((id) => [id, new Set()]));
        let left = TASKS;
        await Promise.all(
          Array.from({ length: POLLERS }, async (_, poller) => {
            const agent = names[poller % names.length] as string;
            for (let n = poller; left > 0; n++) {
              const url = running?.services[n % 2]?.url as string;
              const { reason, task } = await poll(url, agent, capacityOf(poller % names.length));
              reasons[reason] = (reasons[reason] ?? 0) + 1;
              if (task) shown.get(task.id)?.add(agent);
              if (reason !== 'assigned') {
                await sleep(5);
                continue;
              }
              // Other pollers of the agent meet it at work.
              await sleep(10 * Math.random());
              await handIn(task?.id ?? 0, agent);
              left--;
            }
          }),
        );
        const { claims, faults } = await claimsOf(ids, agents);
        expect(faults, `round ${round}`).to.deep.equal([]);
        for (const id of ids) {
          expect(claims.get(id), `round ${round}: claims of task ${id}`).to.have.length(1);
          expect([...(shown.get(id) ?? [])], `round ${round}: agents of task ${id}`).to.deep.equal(claims.get(id));
        }
      }
      const seconds = (performance.now() - begun) / 1_000;
      console.log(`      ${Math.round((ROUNDS * TASKS) / seconds)} tasks a second;`, reasons);
    });
  });
}
