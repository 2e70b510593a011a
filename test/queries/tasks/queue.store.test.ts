/** What polls of the queue read: the right tasks in the right order, and of a large backlog only its front. */
import { expect } from 'chai';
import { sql } from 'kysely';
import { addIndexes } from '../../../infra/read-models/tables.ts';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { usersProjection } from '../../../projections/auth/users.ts';
import { schemaOf, type Table } from '../../../projections/projection.ts';
import { projectsProjection } from '../../../projections/projects/projects.ts';
import { tasksProjection, tasksTable } from '../../../projections/tasks/tasks.ts';
import { pollsStatement, staleTaskReads, taskQueueReads, waitingTasks } from '../../../queries/tasks/queue.ts';
import { recurrenceReads } from '../../../queries/tasks/recurrence.ts';
import { userCreated } from '../../../shared/events/auth/users.ts';
import { projectCreated } from '../../../shared/events/projects/projects.ts';
import { taskRecurred } from '../../../shared/events/tasks/recurrence.ts';
import { newUser } from '../../support/ann.ts';
import { sample, timeOf } from '../../support/kit.ts';
import { planOf } from '../../support/plans.ts';
import { agentRegisteredAs, readModels, secondsOf } from '../../support/rows.ts';
import { createdAs } from '../../support/tasks.ts';

const BACKLOG = 20_000;

describe('queue queries', function () {
  this.timeout(120_000);
  const models = readModels([tasksProjection, projectsProjection, agentsProjection, usersProjection], () => [
    createdAs(1, { priority: 'low' }),
    createdAs(2, { due_date: 20 }),
    createdAs(3, { due_date: 10, assigned_to: 'ada', status: 'assigned' }),
    createdAs(4, { assigned_to: 'ada', status: 'in_progress' }),
    createdAs(5, { assigned_to: 'bob', status: 'assigned', priority: 'critical' }),
    createdAs(6),
    createdAs(7, { priority: 'critical', assigned_to: 'ada', status: 'assigned' }),
    [createdAs(8, { priority: 'critical' }), { workspace: 2 }],
    createdAs(9, { status: 'backlog' }),
    createdAs(10, { priority: 'urgent', assigned_to: 'ada', status: 'inbox' }),
    createdAs(11, { assigned_to: 'ada', status: 'in_progress' }),
  ]);

  const queue = () => taskQueueReads(models.reads);
  /** Ids of the tasks that wait for one agent. */
  const waitingFor = async (workspace: number, agent: string, limit: number) =>
    (await queue().look([{ workspace, agent }], limit)).waiting.map(({ id }) => id);

  it('return tasks that wait for this or any agent: urgent, then due, then oldest first', async () => {
    expect(await waitingFor(1, 'ada', 20)).to.deep.equal([7, 3, 2, 6, 1, 10]);
    expect(await waitingFor(1, 'ada', 2), 'two of its own, and two of any').to.deep.equal([7, 3, 2, 6]);
    expect(await waitingFor(1, 'unassigned', 20)).to.deep.equal([2, 6, 1]);
    expect(await waitingFor(2, 'ada', 20)).to.deep.equal([8]);
  });

  it('return what an agent works on: how many tasks, and the one that was changed last', async () => {
    const { agents } = await queue().look([{ workspace: 1, agent: 'ada' }], 16);
    expect(agents).to.have.length(1);
    expect(agents[0]?.count).to.equal(2);
    expect(agents[0]?.newest).to.deep.include({ id: 11, status: 'in_progress', assigned_to: 'ada' });
    expect(agents[0]?.newest).not.to.have.any.keys('project_name', 'project_prefix', 'ticket_ref');
    const elsewhere = await queue().look([{ workspace: 2, agent: 'ada' }], 16);
    expect(elsewhere.agents).to.deep.equal([{ id: null, count: 0, newest: null }]);
  });

  it('give concurrent polls one result: by workspace and agent', async () => {
    const polls = [
      { workspace: 1, agent: 'unassigned' },
      { workspace: 1, agent: 'ada' },
      { workspace: 2, agent: 'ada' },
      { workspace: 1, agent: 'ada' },
      { workspace: 1, agent: 'bob' },
      { workspace: 9, agent: 'ada' },
    ];
    const { agents, waiting } = await queue().look(polls, 20);
    expect(agents.map(({ count, newest }) => [count, newest?.id])).to.deep.equal([
      ...[
        [0, undefined],
        [2, 11],
        [0, undefined],
        [2, 11],
        [0, undefined],
        [0, undefined],
      ],
    ]);
    expect(waiting.filter(({ workspace }) => workspace === 1).map(({ id, agent }) => [id, agent])).to.deep.equal([
      ...[
        [5, 'bob'],
        [7, 'ada'],
        [3, 'ada'],
        [2, null],
        [6, null],
        [1, null],
        [10, 'ada'],
      ],
    ]);
    expect(waiting.filter(({ workspace }) => workspace !== 1)).to.deep.equal([{ workspace: 2, id: 8, agent: null }]);
  });

  it('return stalled tasks of offline or unknown agents, page by page', async () => {
    const { stale } = staleTaskReads(models.reads);
    const registered = (agentId: number, name: string, status: string) => agentRegisteredAs(agentId, name, { status });
    const user = userCreated.draft({
      ...newUser('ann', { display_name: 'Ann A', role: 'operator', tenant: 9, workspace: 5 }),
      user_id: 1,
      credential_id: 'c',
    });
    const project = sample(projectCreated, { project_id: 1, name: 'General', slug: 'general', ticket_prefix: 'GEN' });
    const working = (taskId: number, assignedTo: string | null) =>
      createdAs(taskId, { status: 'in_progress', assigned_to: assignedTo });
    const here = { workspace: 5, tenant: 9 };
    const first = secondsOf(12);
    await models.tell(
      ...[
        project,
        registered(1, 'off', 'offline'),
        registered(2, 'on', 'busy'),
        user,
        working(50, 'off'),
        working(51, 'on'),
        working(52, 'ghost'),
        working(53, 'ann'),
        working(54, 'Ann A'),
        working(55, null),
        createdAs(56, { status: 'assigned', assigned_to: 'off' }),
        working(57, 'off'),
      ].map((draft) => [draft, here] as const),
    );
    const all = await stale(first + 100, undefined, 10);
    expect(all).to.deep.equal([
      { tenant: 9, workspace: 5, id: 50, agent: 'off', known: true, updatedAt: first + 4 },
      { tenant: 9, workspace: 5, id: 52, agent: 'ghost', known: false, updatedAt: first + 6 },
      { tenant: 9, workspace: 5, id: 57, agent: 'off', known: true, updatedAt: first + 11 },
    ]);
    expect(await stale(first + 6, undefined, 10), 'not changed later').to.deep.equal(all.slice(0, 2));
    expect(await stale(first + 100, undefined, 1)).to.deep.equal(all.slice(0, 1));
    expect(await stale(first + 100, all[0], 1)).to.deep.equal(all.slice(1, 2));
    expect(await stale(first + 100, all[2], 1)).to.deep.equal([]);
  });

  it('return recurring tasks with their start, and whether their last task exists', async () => {
    const { recurring, titleTaken } = recurrenceReads(models.reads);
    const metadata = { recurrence: { cron_expr: '0 9 * * *', enabled: true } };
    const recurred = (taskId: number, childId: number) =>
      taskRecurred.draft({ task_id: taskId, title: 'x', child_id: childId, due_at: 600, spawn_count: 1 });
    const here = { workspace: 5, tenant: 9 };
    const first = secondsOf(24);
    await models.tell(
      ...[
        createdAs(60, { metadata, title: 'Water the plants' }),
        createdAs(61, { metadata }),
        recurred(61, 70),
        createdAs(62, { metadata }),
        recurred(62, 71),
        createdAs(71),
        createdAs(63, { metadata: { recurrence: { ...metadata.recurrence, enabled: false } } }),
      ].map((draft) => [draft, here] as const),
    );
    const at = { tenant: 9, workspace: 5, cron: '0 9 * * *' };
    const all = await recurring({ workspace: 0, id: 0 }, 10);
    expect(all).to.deep.equal([
      { ...at, id: 60, cronSince: first, recurredAt: null, missingChild: null },
      { ...at, id: 61, cronSince: first + 1, recurredAt: 600, missingChild: 70 },
      { ...at, id: 62, cronSince: first + 3, recurredAt: 600, missingChild: null },
    ]);
    expect(await recurring({ workspace: 5, id: 60 }, 1)).to.deep.equal(all.slice(1, 2));
    expect(await recurring({ workspace: 6, id: 0 }, 10)).to.deep.equal([]);
    const taken = (workspace: number, project: number, title: string, since = first - 1) =>
      titleTaken(workspace, project, title, since);
    expect(await taken(5, 1, 'Water the plants')).to.equal(true);
    expect(await taken(5, 1, 'Water the plants', first), 'of another year').to.equal(false);
    expect(await taken(5, 2, 'Water the plants')).to.equal(false);
    expect(await taken(4, 1, 'Water the plants')).to.equal(false);
    expect(await taken(5, 1, 'Water the plant')).to.equal(false);
  });

  it(`read one page of each half for a poll, out of ${BACKLOG} waiting tasks`, async () => {
    const schema = schemaOf(tasksProjection);
    const table = `${schema}.tasks`;
    const replaced: Readonly<Record<string, string>> = {
      workspace_id: '3',
      id: '1000 + n',
      priority_rank: 'n % 4',
      due_date: 'CASE WHEN n % 3 = 0 THEN n END',
      created_at: 'n',
      assigned_to: "CASE n % 4 WHEN 0 THEN 'ada' WHEN 1 THEN 'agent-' || n % 50 END",
    };
    const columns = Object.keys(tasksTable.columns);
    const values = columns.map((column) => replaced[column] ?? `t.${column}`).join(', ');
    // Indexes are quicker made than kept up row by row.
    for (const n of tasksTable.indexes.keys()) await models.query(`DROP INDEX ${schema}.tasks_${n + 1}`);
    await models.query(`INSERT INTO ${table} (${columns.join(', ')}, position)
      SELECT ${values}, 99 FROM ${table} t, generate_series(1, ${BACKLOG}) n WHERE t.workspace_id = 1 AND t.id = 6`);
    await addIndexes(models.reads.db, schema, tasksTable as unknown as Table);
    await models.query(`ANALYZE ${table}`);
    const limit = 16;
    const alone = sql`SELECT * FROM ${waitingTasks(models.reads, 3, 'ada', limit)} x`;
    const together = pollsStatement(
      models.reads,
      [
        { workspace: 3, agent: 'ada' },
        { workspace: 3, agent: 'agent-1' },
      ],
      limit,
    );
    for (const [statement, count] of [
      [alone, 2],
      // And what the agents work on.
      [together, 3],
    ] as const) {
      const nodes = await planOf(models.reads.db, statement.compile(models.reads.db));
      const scans = nodes.filter((node) => node['Relation Name'] === 'tasks');
      expect(scans, JSON.stringify(nodes)).to.have.length(count);
      for (const scan of scans) {
        expect(scan['Node Type']).to.match(/^Index (Only )?Scan$/);
        expect(scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0)).to.be.at.most(limit);
      }
      const most = Math.max(...nodes.map((node) => node['Actual Rows']));
      expect(most, 'rows of the widest step').to.be.at.most(3 * limit);
    }
  });

  it('order otherwise equal tasks by id, wherever a page ends', async () => {
    const same = { at: timeOf(50), workspace: 6 };
    // Neither the order in which they are made nor its reverse.
    for (const id of [73, 71, 75, 72, 74])
      await models.tell(
        [createdAs(id, { status: 'inbox' }), same],
        [createdAs(id + 10, { assigned_to: 'ada', status: 'in_progress' }), same],
      );
    for (let limit = 1; limit <= 5; limit++)
      expect(await waitingFor(6, 'ada', limit)).to.deep.equal([71, 72, 73, 74, 75].slice(0, limit));
    const { agents } = await queue().look([{ workspace: 6, agent: 'ada' }], 1);
    expect([agents[0]?.count, agents[0]?.newest?.id]).to.deep.equal([5, 85]);
  });

  it('give each agent its id, and no task of an earlier agent of its name', async () => {
    const here = { at: timeOf(60), workspace: 7 };
    const mine = (taskId: number, assigneeId: number | undefined, status: string) =>
      createdAs(taskId, { assigned_to: 'ada', status, ...(assigneeId !== undefined && { assignee_id: assigneeId }) });
    for (const draft of [
      agentRegisteredAs(31, 'ada', { status: 'idle' }),
      mine(91, 30, 'assigned'),
      mine(92, 31, 'assigned'),
      mine(93, undefined, 'assigned'),
      mine(94, 30, 'in_progress'),
      mine(95, 31, 'in_progress'),
    ])
      await models.tell([draft, here]);
    const { agents, waiting } = await queue().look(
      [
        { workspace: 7, agent: 'ada' },
        { workspace: 7, agent: 'bob' },
      ],
      16,
    );
    expect(agents.map(({ id, count, newest }) => [id, count, newest?.id])).to.deep.equal([
      [31, 1, 95],
      [null, 0, undefined],
    ]);
    expect(waiting.map(({ id }) => id)).to.deep.equal([92, 93]);
  });
});
