/** The rule of which tasks a caller sees: the same in SQL as in `seesTask`, and asked by every query that shows tasks. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { projectsProjection } from '../../../projections/projects/projects.ts';
import { taskCommentsProjection } from '../../../projections/tasks/comments.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { listTasks, taskById } from '../../../queries/tasks/tasks.ts';
import { requireSeen } from '../../../queries/tasks/visibility.ts';
import { allTasks, seesTask, type TaskView } from '../../../shared/identity.ts';
import { readModels } from '../../support/rows.ts';
import { createdAs } from '../../support/tasks.ts';

/** Queries that read tasks, or records about them, without a view, and why they show no task to a caller. */
const WITHOUT_VIEW: Readonly<Record<string, string>> = {
  'admin/cleanup': 'counts rows that are too old',
  'agents/evidence': 'gives positions of events',
  'alerts/backtests': 'says how often a condition was met',
  'github/syncs': 'for the sync, on schedule',
  'history/diff': 'for admins, who see all',
  'monitoring/status': 'counts',
  'monitoring/workload': 'counts',
  'projects/projects': 'counts the tasks of projects',
  'agents/references': 'for what follows an agent that was renamed or deleted',
  'tasks/dispatch': 'for the agent runner, on schedule',
  'tasks/queue': 'for claims: what an agent claims is assigned to it',
  'tasks/recurrence': 'for recurring tasks, on schedule',
  'tasks/routing': 'for assignments, on schedule',
  'tokens/reports': 'says which ids of tasks exist, to commands',
  'workspaces/removal': 'for the removal of workspaces',
};

const messageOf = (work: () => Promise<unknown>): Promise<string | undefined> =>
  work().then(
    () => undefined,
    (error: Error) => error.message,
  );

const TELLING = /projections\/(tasks\/tasks|tasks\/comments|quality\/reviews|monitoring\/activities|chat)\.js'/;

describe('task visibility', () => {
  const owners: { assigned_to: string | null; assignee_id?: number; creatorAgent: number | null }[] = [
    { assigned_to: null, creatorAgent: null },
    { assigned_to: 'ada', creatorAgent: null },
    { assigned_to: 'ada', creatorAgent: 1 },
    { assigned_to: 'ada', creatorAgent: 2 },
    { assigned_to: 'bob', creatorAgent: null },
    { assigned_to: 'bob', creatorAgent: 1 },
    { assigned_to: null, creatorAgent: 1 },
    { assigned_to: null, creatorAgent: 2 },
    { assigned_to: '', creatorAgent: null },
    { assigned_to: 'ada', assignee_id: 1, creatorAgent: null },
    { assigned_to: 'ada', assignee_id: 2, creatorAgent: null },
    { assigned_to: 'bob', assignee_id: 1, creatorAgent: 7 },
  ];
  const agent = (name: string, id: number | null): TaskView => ({ workspace: 1, agent: { name, id } });
  const views = [
    allTasks(1),
    ...[agent('ada', 1), agent('ada', null), agent('ada', 7), agent('bob', 2), agent('', 3), agent('Ada', 0)],
  ];

  const models = readModels([tasksProjection, taskCommentsProjection, projectsProjection, agentsProjection], () => [
    ...owners.map(({ creatorAgent, ...assignee }, index) => {
      const actor = { type: 'agent', id: creatorAgent ?? 0, name: 'agent' } as const;
      return [createdAs(index + 1, assignee), creatorAgent === null ? {} : { actor }] as const;
    }),
    // By a user for an agent, in another workspace.
    [createdAs(20, { assigned_to: 'ada' }), { workspace: 2, agent: 1 }],
  ]);

  it('follows the same rule in statements as in memory, for lists, totals and records', async () => {
    const query = { limit: 200, offset: 0 } as Parameters<typeof listTasks>[2];
    for (const view of views) {
      const label = JSON.stringify(view);
      const expected = owners.flatMap((one, index) =>
        seesTask(view, {
          assignedTo: one.assigned_to,
          assigneeId: one.assignee_id ?? null,
          creatorAgent: one.creatorAgent,
        })
          ? [index + 1]
          : [],
      );
      const { tasks, total } = await listTasks(models.reads, view, query);
      expect(tasks.map(({ id }) => id).reverse(), label).to.deep.equal(expected);
      expect(total, label).to.equal(expected.length);
      const deep = await listTasks(models.reads, view, { ...query, offset: 2_000 });
      expect(deep, label).to.deep.include({ tasks: [], total: expected.length });
      for (const id of owners.keys()) {
        const refused = /is neither assigned to it nor created by it/;
        const said = [
          await messageOf(() => taskById(models.reads, view, id + 1)),
          await messageOf(() => requireSeen(models.reads, view, id + 1)),
        ];
        for (const message of said)
          if (expected.includes(id + 1)) expect(message, `${label} ${id + 1}`).to.equal(undefined);
          else expect(message, `${label} ${id + 1}`).to.match(refused);
      }
      expect(await taskById(models.reads, view, 20), 'of another workspace').to.equal(undefined);
      expect(await messageOf(() => requireSeen(models.reads, view, 20)), 'nothing to see').to.equal(undefined);
    }
  });

  it('treats an agent that a user has named as the creator', async () => {
    const seen = (id: number) =>
      listTasks(models.reads, { workspace: 2, agent: { name: 'x', id } }, {
        ...{ limit: 10, offset: 0 },
      } as Parameters<typeof listTasks>[2]);
    expect([(await seen(1)).total, (await seen(2)).total]).to.deep.equal([1, 0]);
  });

  it('is checked by every query that reads tasks or data about them, except those that show none', () => {
    const root = fileURLToPath(new URL('../../../queries', import.meta.url));
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'));
    const without = files
      .filter((name) => !name.endsWith('visibility.js'))
      .filter((name) => {
        const text = readFileSync(`${root}/${name}`, 'utf8');
        return TELLING.test(text) && !text.includes("visibility.js'");
      })
      .map((name) => name.replaceAll('\\', '/').replace(/\.js$/, ''));
    expect(without.sort()).to.deep.equal(Object.keys(WITHOUT_VIEW).sort());
  });
});
