/** Lists of tasks stay on their indexes: plans and rows read with 20,000 tasks. */
import { expect } from 'chai';
import { CompiledQuery } from 'kysely';
import { addIndexes, addKey, createBareTables, dropSchema } from '../../../infra/read-models/tables.ts';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { schemaOf } from '../../../projections/projection.ts';
import { projectsProjection } from '../../../projections/projects/projects.ts';
import { taskCommentsProjection } from '../../../projections/tasks/comments.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import type { Reads } from '../../../queries/reads.ts';
import { assignmentsFor, taskStatsOf } from '../../../queries/tasks/assignments.ts';
import { listTasks, taskById } from '../../../queries/tasks/tasks.ts';
import { PAGE_BYTES } from '../../../shared/contract/common.ts';
import { PRIORITIES, TASK_SORTS, TASK_STATUSES, type TasksQuery } from '../../../shared/contract/tasks/tasks.ts';
import { allTasks } from '../../../shared/identity.ts';
import { plansOf, rowsOf } from '../../support/plans.ts';
import { openReadModels, readModels } from '../../support/rows.ts';
import { created, createdAs, updated } from '../../support/tasks.ts';
import { until } from '../../support/until.ts';

const TASKS = 20_000;
const PART = 5_000;
const AGENTS = 1_000;
const PROJECTS = 100;

describe('task queries, with 20,000 tasks', function () {
  this.timeout(180_000);
  const models = readModels([tasksProjection, taskCommentsProjection, projectsProjection, agentsProjection]);
  before(async () => {
    const list = (texts: readonly string[]) => `(ARRAY[${texts.map((text) => `'${text}'`).join()}])`;
    const schema = schemaOf(tasksProjection);
    const { db } = models.reads;
    // Indexed when they are full, as a rebuild does it: filling fifteen indexes row by row takes several times as long.
    await dropSchema(db, schema);
    await createBareTables(db, tasksProjection, schema);
    // In parts: each statement has a time limit.
    for (let done = 0; done < TASKS; done += PART)
      await models.query(`
      INSERT INTO ${schema}.tasks (workspace_id, id, title, status, priority, priority_rank, project_id,
        project_ticket_no, assigned_to, assignee_id, created_by, created_at, updated_at, due_date, retry_count, completed_at, tags,
        metadata, dispatch_attempts, position)
      SELECT 1, n, 'task', ${list(TASK_STATUSES)}[n % ${TASK_STATUSES.length} + 1],
        ${list(PRIORITIES)}[n % 4 + 1], n % 4, n % ${PROJECTS} + 1, n,
        CASE WHEN n % 3 > 0 THEN 'agent-' || n % ${AGENTS} END,
        CASE WHEN n % 3 > 1 THEN n % ${AGENTS} + 1 END, 'x', 1700000000 + n, 1700000000 + n * 7 % 50000,
        CASE WHEN n % 2 = 0 THEN 1800000000 + n % 1000 END, 0, NULL, '[]', '{}', 0, n
      FROM generate_series(${done} + 1, ${done} + ${PART}) n`);
    await models.query(`
      INSERT INTO ${schema}.task_counts (workspace_id, status, priority, assigned_to, assignee_id, project_id, count, position)
      SELECT workspace_id, status, priority, coalesce(assigned_to, ''), coalesce(assignee_id, 0), project_id, count(*), 1
      FROM ${schema}.tasks GROUP BY 1, 2, 3, 4, 5, 6`);
    await models.query(`
      INSERT INTO ${schemaOf(agentsProjection)}.agents (workspace_id, id, tenant_id, name, role, status, created_at,
        updated_at, alive_at, source, hidden, position)
      SELECT 1, n + 1, 1, 'agent-' || n, 'x', 'idle', 1, 1, 1, 'x', 0, n FROM generate_series(0, ${AGENTS} - 1) n`);
    await models.query(`
      INSERT INTO ${schema}.task_changes (workspace_id, id, project_id, title, updated_at, position)
      SELECT workspace_id, id, project_id, title, updated_at, position FROM ${schema}.tasks`);
    for (const table of tasksProjection.tables) {
      await addKey(db, schema, table);
      await addIndexes(db, schema, table);
    }
    await models.query('ANALYZE');
  });

  /** Rows of `tasks` that the statements of a question touch, and how they get at them. */
  async function read(question: (reads: Reads) => Promise<unknown>) {
    const plans = await plansOf(models.reads, question);
    const of = (table: string) => plans.filter((one) => one['Relation Name'] === table);
    return {
      scans: of('tasks').map((one) => one['Node Type']),
      rows: rowsOf(of('tasks')),
      counts: rowsOf(of('task_counts')),
    };
  }

  const query = (more: Partial<TasksQuery> = {}): TasksQuery => ({
    status: undefined,
    assigned_to: undefined,
    priority: undefined,
    project_id: undefined,
    limit: 50,
    offset: 0,
    ...more,
  });

  const filtered: Partial<TasksQuery>[] = [
    {},
    { status: 'review' },
    { assigned_to: 'agent-7' },
    { priority: 'low' },
    { priority: 'no such' },
    { project_id: 7 },
    { status: 'assigned', assigned_to: 'agent-7' },
    { status: 'no such' },
    { assigned_to: 'nobody at all' },
  ];
  for (const filters of filtered) {
    it(`read little more than the page for the list by ${Object.keys(filters).join(' and ') || 'nothing'}`, async () => {
      const { scans, rows } = await read((reads) => listTasks(reads, allTasks(1), query(filters)));
      expect(scans, JSON.stringify(scans)).not.to.include('Seq Scan').and.not.to.be.empty;
      expect(rows).to.be.below(500);
    });
  }

  for (const sort of TASK_SORTS) {
    it(`read little more than the page for the list by ${sort}, in both directions`, async () => {
      for (const order of ['asc', 'desc'] as const) {
        const { scans, rows } = await read((reads) => listTasks(reads, allTasks(1), query({ sort, order })));
        expect(scans).not.to.include('Seq Scan').and.not.to.include('Sort');
        expect(rows).to.be.below(500);
      }
    });
  }

  it('order the list by updated_at by the last changes, in both directions', async () => {
    const { rows } = await models.reads.db.executeQuery<{ id: number }>(
      CompiledQuery.raw(
        `SELECT id FROM ${schemaOf(tasksProjection)}.task_changes ORDER BY updated_at DESC, position DESC`,
      ),
    );
    const ids = rows.map(({ id }) => id);
    const page = async (order: 'asc' | 'desc') =>
      (await listTasks(models.reads, allTasks(1), query({ sort: 'updated_at', order }))).tasks.map(({ id }) => id);
    expect(await page('desc')).to.deep.equal(ids.slice(0, 50));
    expect(await page('asc')).to.deep.equal(ids.slice(-50).reverse());
  });

  it('read a deep page from the nearer end, and return the right one', async () => {
    const pages = [0, 30, TASKS - 1_010, TASKS - 10].map((offset) => query({ offset, limit: 20 }));
    for (const page of pages) {
      const { tasks, total } = await listTasks(models.reads, allTasks(1), page);
      const expected = Array.from({ length: 20 }, (_, n) => TASKS - page.offset - n).filter((id) => id > 0);
      expect(tasks.map(({ id }) => id)).to.deep.equal(expected);
      expect(total).to.equal(TASKS);
    }
    const { scans, rows } = await read((reads) => listTasks(reads, allTasks(1), query({ offset: TASKS - 1_000 })));
    expect(scans).not.to.include('Seq Scan');
    expect(rows).to.be.below(2_500);
  });

  it('read few rows for requests by agents', async () => {
    const questions: ((reads: Reads) => Promise<unknown>)[] = [
      (reads) => assignmentsFor(reads, allTasks(1), 'agent-7'),
      (reads) => taskById(reads, allTasks(1), 7_000),
    ];
    for (const question of questions) {
      const { scans, rows } = await read(question);
      expect(scans).not.to.include('Seq Scan').and.not.to.be.empty;
      expect(rows).to.be.below(500);
    }
    const agents = Array.from({ length: 50 }, (_, n) => ({ id: n + 1, name: `agent-${n}` }));
    const stats = await read((reads) => taskStatsOf(reads, 1, agents));
    expect(stats.scans).to.deep.equal([]);
    // There are few counts: they are read once for the agents' ids, and once for their names.
    expect(stats.counts).to.be.below(20_000);
  });
});

describe('task updates', () => {
  it('write no index entry unless an indexed list column changes', async () => {
    const { reads, tell, close } = await openReadModels([tasksProjection]);
    try {
      const hotUpdates = async () => {
        const table = `${schemaOf(tasksProjection)}.tasks`;
        const { rows } = await reads.db.executeQuery<{ updates: number; hot: number }>(
          CompiledQuery.raw(
            `SELECT pg_stat_get_tuples_updated($1::regclass) AS updates,
            pg_stat_get_tuples_hot_updated($1::regclass) AS hot`,
            [table],
          ),
        );
        return rows[0] as (typeof rows)[number];
      };
      await tell(created());
      await tell(updated({ title: 'Mend the gate', description: 'today' }));
      await tell(updated({ metadata: { colour: 'red' }, tags: ['gate'], estimated_hours: 3 }));
      // Statistics arrive a little later.
      await until('both changes are counted', async () => (await hotUpdates()).updates === 2);
      expect((await hotUpdates()).hot).to.equal(2);
    } finally {
      await close();
    }
  });
});

describe('lists of large tasks', () => {
  // JSON that is compressed to a hundredth, and text that JSON writes with six characters for each.
  const large = [{ metadata: { text: 'x'.repeat(190_000) } }, { description: '\u0001'.repeat(40_000) }] as const;
  for (const [at, fields] of large.entries())
    it(`are not read beyond the size of a page (${['compressed JSON', 'escaped text'][at]})`, async () => {
      const { reads, tell, close } = await openReadModels([
        tasksProjection,
        taskCommentsProjection,
        projectsProjection,
        agentsProjection,
      ]);
      try {
        await tell(...Array.from({ length: 40 }, (_, n) => createdAs(n + 1, fields)));
        const query = { limit: 200, offset: 0 } as TasksQuery;
        const { tasks, total } = await listTasks(reads, allTasks(1), query);
        expect(total).to.equal(40);
        const bytes = Buffer.byteLength(JSON.stringify(tasks));
        expect(bytes).to.be.within(PAGE_BYTES - 500_000, PAGE_BYTES + 100_000);
        const next = await listTasks(reads, allTasks(1), { ...query, offset: tasks.length });
        const both = [...tasks, ...next.tasks].map(({ id }) => id);
        expect(both).to.deep.equal(Array.from({ length: both.length }, (_, n) => 40 - n));
        const one = await listTasks(reads, allTasks(1), { ...query, offset: 39 });
        expect(one.tasks.map(({ id }) => id)).to.deep.equal([1]);
      } finally {
        await close();
      }
    });
});
