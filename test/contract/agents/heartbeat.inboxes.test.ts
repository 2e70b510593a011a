/**
 * What is waiting for an agent, as heartbeats show it from their cache, is what a fresh read shows: after random writes,
 * for every agent, and for each caller's view. Which agents a write concerns follows from the rows that it changes, so
 * the writes here need not be all of them; each table must have some.
 */
import { expect } from 'chai';
import { agentsTable } from '../../../projections/agents/agents.ts';
import { messagesTable } from '../../../projections/chat.ts';
import { activitiesTable } from '../../../projections/monitoring/activities.ts';
import { nameOwnersTable, notificationsTable } from '../../../projections/monitoring/notifications.ts';
import type { Table } from '../../../projections/projection.ts';
import { projectsTable } from '../../../projections/projects/projects.ts';
import { tasksTable } from '../../../projections/tasks/tasks.ts';
import { createInboxes, inboxOf } from '../../../queries/agents/heartbeat.ts';
import { allTasks, type TaskView } from '../../../shared/identity.ts';
import { SERVERS } from '../../support/databases.ts';
import { fixture } from '../../support/fixture.ts';
import { randomFrom } from '../../support/load.ts';
import { startAgentsWorld } from '../../support/worlds/agents.ts';

const AGENTS = 3;
/** More than there are agents, so that a name passes from one to another and back. */
const NAMES = ['ada', 'bob', 'cleo', 'dora'];
const STEPS = 40;
/** Steps in which a table that is left out must be noticed. */
const MOST_STEPS = 400;

describe('Inboxes of agents', function () {
  this.timeout(120_000);
  const world = fixture(startAgentsWorld);
  const core = () => world.world.service.core;

  interface Agent {
    readonly id: number;
    name: string;
    /** The key of the agent. */
    readonly key: string;
  }

  /** Agents, and random writes that concern them. @param prefix of all their names */
  async function scene(prefix: string, seed: number) {
    const random = randomFrom(seed);
    const one = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    const maybe = () => random() < 0.5;
    const names = NAMES.map((name) => `${prefix}${name}`);
    const agents: Agent[] = [];
    for (const name of names.slice(0, AGENTS)) {
      const { id } = await world.create({ name });
      const { body } = await world.ask('POST', `/api/agents/${id}/keys`, { name: 'own', scopes: ['operator'] });
      agents.push({ id, name, key: body.api_key });
    }
    const tasks: number[] = [];
    const messages: number[] = [];
    const { body: created } = await world.ask('POST', '/api/projects', { name: `${prefix}project` });
    const project: number = created.project.id;
    const anyName = () => one(agents).name;
    const ask = async (method: string, path: string, body?: unknown, as?: string) =>
      (await world.ask(method, path, body, as)).body;
    const change = (body: object) => tasks.length > 0 && ask('PUT', `/api/tasks/${one(tasks)}`, body);
    const writes: Readonly<Record<string, () => unknown>> = {
      async createTask() {
        const body = {
          title: maybe() ? `for ${one(names)}` : 'work',
          ...(maybe() && { assigned_to: anyName() }),
          ...(maybe() && { project_id: project }),
          priority: one(['critical', 'high', 'low']),
        };
        const { task } = await ask('POST', '/api/tasks', body, maybe() ? one(agents).key : undefined);
        if (task) tasks.push(task.id);
      },
      mention: () => ask('POST', '/api/tasks', { title: `for ${names.join(' or ')}` }),
      assign: () => change({ assigned_to: maybe() ? anyName() : null }),
      retitle: () => change({ title: `about ${anyName()}` }),
      moveOn: () => change({ status: one(['assigned', 'in_progress', 'review', 'inbox']) }),
      hurry: () => change({ priority: one(['critical', 'medium']) }),
      file: () => change({ project_id: project }),
      claim: () => ask('GET', `/api/tasks/queue?agent=${anyName()}`),
      deleteTask: () => tasks.length > 3 && ask('DELETE', `/api/tasks/${tasks.shift()}`),
      comment: () =>
        tasks.length > 0 &&
        ask('POST', `/api/tasks/${one(tasks)}/comments`, { author: anyName(), content: `look, @${anyName()}` }),
      message: () => ask('POST', '/api/agents/message', { from: anyName(), to: anyName(), content: 'hello' }),
      async chat() {
        const { message } = await ask('POST', '/api/chat/messages', { from: 'boss', to: anyName(), content: 'hello' });
        if (message) messages.push(message.id);
      },
      readChat: () => messages.length > 0 && ask('PATCH', `/api/chat/messages/${messages.shift()}`, { read: true }),
      readAll: () => ask('PUT', '/api/notifications', { recipient: anyName(), markAllRead: true }),
      dismiss: () => ask('DELETE', '/api/notifications', { recipient: anyName(), olderThan: 999_999_999_999 }),
      deliver: () => ask('POST', '/api/notifications/deliver', { agent_filter: anyName() }),
      notify: () => ask('POST', '/api/notifications/deliver', { agent: anyName(), title: 'news', message: 'look' }),
      async rename() {
        const free = names.filter((name) => !agents.some((agent) => agent.name === name));
        const agent = one(agents);
        const name = one(free);
        const { agent: now } = await ask('PUT', `/api/agents/${agent.id}`, { name });
        if (now) agent.name = now.name;
      },
      renameProject: () =>
        ask('PATCH', `/api/projects/${project}`, { name: `${prefix}project ${Math.floor(random() * 1_000)}` }),
      work: () => ask('PUT', `/api/agents/${one(agents).id}`, { status: one(['idle', 'busy']) }),
    };
    const now = Date.now;
    const inboxes = createInboxes({ reads: core().reads, freshness: core().positions, now });
    /** The first difference between what is cached and what is there; undefined: none. */
    async function difference() {
      for (const { id, name } of agents) {
        const agent = { id, name };
        const views: TaskView[] = [allTasks(1), { workspace: 1, agent }, { workspace: 1, agent: { name, id: null } }];
        for (const view of views) {
          const cached = await inboxes.find(view, agent, performance.now());
          const there = await inboxOf(core().reads, view, agent, Math.floor(now() / 1_000));
          try {
            expect(cached, JSON.stringify(view)).to.deep.equal(there);
          } catch (error) {
            return error as Error;
          }
        }
      }
      return undefined;
    }
    return {
      difference,
      /** @param among names of writes; default: all */
      async step(among: readonly string[] = Object.keys(writes)) {
        const name = one(among);
        await writes[name]?.();
        return name;
      },
    };
  }

  it('are current after any write', async () => {
    const seed = Math.floor(Math.random() * 1e9);
    const { step, difference } = await scene('any-', seed);
    const steps: string[] = [];
    for (let n = 0; n < STEPS; n++) {
      steps.push(await step());
      const found = await difference();
      if (found)
        throw new Error(`seed ${seed}, after ${steps.slice(-8).join(', ')}: ${found.message}`, { cause: found });
    }
  });

  // A process that shares its database does not know which rows have changed.
  const ALONE = !SERVERS;
  // biome-ignore lint/suspicious/noExplicitAny: tables of different rows.
  const TABLES: readonly (readonly [Table<any>, first: string, among: readonly string[]])[] = [
    [tasksTable, 'createTask', ['createTask', 'assign', 'moveOn', 'hurry']],
    [projectsTable, 'createTask', ['createTask', 'file', 'renameProject']],
    [notificationsTable, 'message', ['message', 'readAll']],
    [nameOwnersTable, 'mention', ['rename']],
    [messagesTable, 'chat', ['chat', 'readChat']],
    [activitiesTable, 'mention', ['mention', 'createTask']],
    [agentsTable, 'message', ['message', 'rename']],
  ];
  for (const [table, first, among] of ALONE ? TABLES : []) {
    it(`would not be current if changes of ${table.name} were left out`, async () => {
      const { concerns } = table;
      const { step, difference } = await scene(`${table.name.replaceAll('_', '-')}-`, 7);
      Object.assign(table, { concerns: () => ({}) });
      try {
        await step([first]);
        let found = await difference();
        for (let n = 0; n < MOST_STEPS && !found; n++) {
          await step(among);
          found = await difference();
        }
        expect(found, `no difference after ${MOST_STEPS} writes`).to.not.equal(undefined);
      } finally {
        Object.assign(table, { concerns });
      }
    });
  }
});
