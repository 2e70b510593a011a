/** Recurring tasks: decided purely, then turns of several processes on one log in memory. */
import { expect } from 'chai';
import { spawnRecurring } from '../../../commands/schedules/tasks/recurrence.ts';
import { decideRecurrence, decideSpawn, titleFor } from '../../../commands/tasks/recurrence.ts';
import { type TaskState, taskDecider, taskStream } from '../../../commands/tasks/tasks.ts';
import type { FoundProject } from '../../../queries/projects/projects.ts';
import type { RecurringTask } from '../../../queries/tasks/recurrence.ts';
import { activeCron, recurrenceSchema } from '../../../shared/contract/tasks/recurrence.ts';
import { nextDue } from '../../../shared/cron.ts';
import { taskRecurred } from '../../../shared/events/tasks/recurrence.ts';
import { type TaskData, taskCreated, taskDeleted } from '../../../shared/events/tasks/tasks.ts';
import { type Draft, givenFor } from '../../support/kit.ts';
import { type MemoryWorld, memoryWorld } from '../../support/memory-world.ts';
import { at, created, deleted, TASK, updated } from '../../support/tasks.ts';
import { testOrigin } from '../../support/world.ts';

const given = givenFor(taskDecider);
const every = (cron: string, more: object = {}) => ({ recurrence: { cron_expr: cron, enabled: true, ...more } });
const recurred = (dueAt: number, childId = 9, spawnCount = 1) =>
  taskRecurred.draft({ task_id: 7, title: TASK.title, child_id: childId, due_at: dueAt, spawn_count: spawnCount });
const NINE = Date.parse('2026-01-05T09:00:00Z') / 1_000;

describe('recurring tasks: decisions', () => {
  const daily = created({ metadata: every('0 9 * * *', { natural_text: 'daily at nine' }) });

  it('a minute is due only once', () => {
    const decide = (dueAt: number, ...drafts: readonly Draft[]) =>
      decideRecurrence(given(daily, ...drafts).state, '0 9 * * *', dueAt, 9);
    expect(decide(NINE)).to.deep.equal([recurred(NINE)]);
    expect(decide(NINE, recurred(NINE))).to.deep.equal([]);
    expect(decide(NINE - 60, recurred(NINE)), 'an earlier one').to.deep.equal([]);
    expect(decide(NINE + 60, recurred(NINE))).to.deep.equal([recurred(NINE + 60, 9, 2)]);
  });

  it('a recurrence that was changed or removed meanwhile creates no task', () => {
    const decide = (metadata: TaskData['metadata']) =>
      decideRecurrence(given(daily, updated({ metadata })).state, '0 9 * * *', NINE, 9);
    expect(decide(every('0 9 * * *'))).to.have.length(1);
    expect(decide(every('0 8 * * *'))).to.deep.equal([]);
    expect(decide(every('0 9 * * *', { enabled: false }))).to.deep.equal([]);
    expect(decide(every('0 9 * * *', { parent_task_id: 3 }))).to.deep.equal([]);
    expect(decide({})).to.deep.equal([]);
    given(daily, deleted()).when(decideRecurrence, '0 9 * * *', NINE, 9).then();
  });

  it('the recurring task records how often and when it ran, and keeps the rest', () => {
    const { task, updated_at } = given(daily, recurred(NINE)).state;
    expect(task.metadata).to.deep.equal(
      every('0 9 * * *', { natural_text: 'daily at nine', last_spawned_at: at(2), spawn_count: 1 }),
    );
    expect(updated_at).to.equal(at(2));
    const counting = given(created({ metadata: every('0 9 * * *', { spawn_count: 41 }) })).state;
    expect(decideRecurrence(counting, '0 9 * * *', NINE, 9)[0]?.data).to.deep.include({ spawn_count: 42 });
  });

  it('the new task copies its template and is then independent', () => {
    const own = { id: 9, cron: '0 9 * * *', title: 'Mend the roof - Jan 05' };
    const ticket = { project_id: 4, project_ticket_no: 8 };
    const template = given(
      created({
        ...{ description: 'All of it', priority: 'high', assigned_to: 'ada', tags: ['roof'], status: 'failed' },
        ...{ outcome: 'failed', error_message: 'rain', due_date: 5, retry_count: 3, dispatch_attempts: 2 },
        metadata: every('0 9 * * *', { secret: 'x' }),
      }),
    ).state;
    const [draft] = decideSpawn(given().state, template, { ...own, ...ticket });
    expect(draft).to.deep.equal(
      taskCreated.draft({
        task_id: 9,
        source: 'recurrence',
        parent_task_id: 7,
        cron: '0 9 * * *',
        task: {
          ...TASK,
          ...ticket,
          title: 'Mend the roof - Jan 05',
          description: 'All of it',
          priority: 'high',
          status: 'assigned',
          assigned_to: 'ada',
          tags: ['roof'],
          created_by: 'scheduler',
          metadata: { recurrence: { parent_task_id: 7, spawned_from_cron: '0 9 * * *' } },
        },
      }),
    );
    const [free] = decideSpawn(given().state, given(daily).state, { ...own, ...ticket });
    expect((free as { data: { task: TaskData } } | undefined)?.data.task).to.deep.include({
      status: 'inbox',
      assigned_to: null,
    });
    expect(decideSpawn(given(created()).state, template, { ...own, ...ticket }), 'there is one').to.deep.equal([]);
  });

  it('titles contain the date, and the time for frequent schedules, in the time zone', () => {
    expect(titleFor('Roof', '0 9 * * *', NINE, 'UTC')).to.equal('Roof - Jan 05');
    expect(titleFor('Roof', '0 * * * *', NINE, 'UTC')).to.equal('Roof - Jan 05, 09:00');
    expect(titleFor('Roof', '0 * * * *', NINE - 9 * 3_600, 'UTC')).to.equal('Roof - Jan 05, 00:00');
    expect(titleFor('Roof', '0 * * * *', NINE, 'Pacific/Auckland')).to.equal('Roof - Jan 05, 22:00');
    expect(titleFor('x'.repeat(500), '0 9 * * *', NINE, 'UTC')).to.equal(`${'x'.repeat(491)} - Jan 05`);
  });

  it('titles of a doubled hour say which one, and those of a gap the day that they are for', () => {
    const titles = (cron: string, zone: string, from: string, count: number) => {
      const found: string[] = [];
      for (let at = Date.parse(from) / 1_000; found.length < count; ) {
        at = nextDue(cron, zone, at) as number;
        found.push(titleFor('X', cron, at, zone).slice('X - '.length));
      }
      return found;
    };
    expect(titles('*/30 * * * *', 'Europe/Berlin', '2026-10-24T23:00:00Z', 6)).to.deep.equal([
      ...['Oct 25, 01:30', 'Oct 25, 02:00 GMT+2', 'Oct 25, 02:30 GMT+2'],
      ...['Oct 25, 02:00 GMT+1', 'Oct 25, 02:30 GMT+1', 'Oct 25, 03:00'],
    ]);
    expect(titles('*/30 * * * *', 'Australia/Lord_Howe', '2026-04-04T14:00:00Z', 3)).to.deep.equal([
      ...['Apr 05, 01:30 GMT+11', 'Apr 05, 01:30 GMT+10:30', 'Apr 05, 02:00'],
    ]);
    // On 28 March the clock goes from 23:00 to the next midnight.
    expect(titles('30 23 * * *', 'America/Nuuk', '2026-03-28T02:00:00Z', 3)).to.deep.equal([
      'Mar 28',
      'Mar 29',
      'Mar 30',
    ]);
    expect(titles('0,30 23 * * *', 'America/Nuuk', '2026-03-28T02:00:00Z', 2)).to.deep.equal([
      ...['Mar 28, 23:00', 'Mar 29, 23:00'],
    ]);
    expect(titles('0 0 * * *', 'America/Santiago', '2026-09-05T05:00:00Z', 2)).to.deep.equal(['Sep 06', 'Sep 07']);
  });

  it('a recurrence requires a valid schedule', () => {
    const problem = (recurrence: unknown) =>
      recurrenceSchema.safeParse(recurrence).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    expect(problem({ cron_expr: '0 9 * * 1-5', enabled: true, more: 1 })).to.equal(undefined);
    expect(problem({ parent_task_id: 3, spawned_from_cron: '0 9 * * *' })).to.equal(undefined);
    expect(problem({ cron_expr: 'daily' })?.[0]).to.match(/^cron_expr: must have 5 fields/);
    expect(problem({ cron_expr: '0 25 * * *', enabled: false })?.[0]).to.match(/^cron_expr: is not a valid schedule/);
    expect(problem({ enabled: true })?.[0]).to.match(/^cron_expr: is missing/);
    expect(
      [
        {},
        { recurrence: 'x' },
        { recurrence: [] },
        { recurrence: null },
        { recurrence: { cron_expr: '* * * * *' } },
      ].map(activeCron),
    ).to.deep.equal([null, null, null, null, null]);
  });
});

describe('recurring tasks: turns', () => {
  const GENERAL: FoundProject = { id: 1, name: 'General', prefix: 'GEN', slug: 'general', status: 'active' };
  const projects = { find: async () => GENERAL, general: async () => GENERAL, placeFor: async () => GENERAL };
  let world: MemoryWorld;
  let clock: number;
  beforeEach(() => {
    clock = (NINE - 3_600) * 1_000;
    world = memoryWorld(() => clock);
  });

  const states = () => {
    const found = new Map<string, TaskState>();
    for (const { stream, type, data } of world.written())
      found.set(stream, taskDecider.evolve(found.get(stream) ?? taskDecider.initial, { type, data, at: clock }));
    return [...found.values()].filter(({ id }) => id > 0);
  };
  const children = () => states().filter(({ task }) => task.created_by === 'scheduler');
  const titles = () => children().map(({ task }) => task.title);

  /** A turn of one process. What the read model says is as of its beginning. */
  function turn(at: number, zone = 'UTC') {
    clock = at * 1_000;
    const seen = states();
    const found = seen.flatMap((state): RecurringTask[] => {
      const cron = activeCron(state.task.metadata);
      if (cron === null) return [];
      const childId = state.recurred?.child_id ?? null;
      const missingChild = seen.some(({ id }) => id === childId) ? null : childId;
      const recurredAt = state.recurred?.due_at ?? null;
      return [{ tenant: 1, workspace: 1, id: state.id, cron, cronSince: NINE - 3_600, recurredAt, missingChild }];
    });
    return spawnRecurring({
      commands: world.process(),
      reads: {
        recurring: async (after, limit) => found.filter(({ id }) => id > after.id).slice(0, limit),
        titleTaken: async (_workspace, _project, title, since) =>
          states().some(({ task, created_at }) => task.title === title && created_at > since),
      },
      projects,
      zone,
      now: () => clock,
    });
  }

  async function recurring(cron: string, taskId = 500): Promise<void> {
    const draft = taskCreated.draft({ task_id: taskId, task: { ...TASK, metadata: every(cron) }, source: 'api' });
    await world.process().record(taskStream(1, taskId), { origin: testOrigin }, [draft]);
  }

  it('a due minute creates one task, however many turns and processes run', async () => {
    await recurring('0 9 * * *');
    expect(await turn(NINE - 1)).to.deep.equal([]);
    const turns = await Promise.all(Array.from({ length: 4 }, () => turn(NINE + 5)));
    expect(turns.flat()).to.have.length(1);
    expect(await turn(NINE + 65)).to.deep.equal([]);
    expect(titles()).to.deep.equal(['Mend the roof - Jan 05']);
    const [child] = children();
    expect(child?.task).to.deep.include({ project_id: GENERAL.id, project_ticket_no: 1, created_by: 'scheduler' });
    const last = world.written().at(-1);
    expect(last?.type).to.equal('TaskCreated');
    expect(await turn(NINE + 86_400)).to.have.length(1);
    expect(titles()).to.deep.equal(['Mend the roof - Jan 05', 'Mend the roof - Jan 06']);
  });

  it('of the times missed while no process was running, the latest is made up for, however long ago', async () => {
    await recurring('*/5 9 * * *');
    await turn(NINE + 20 * 60);
    await turn(NINE + 20 * 60);
    expect(titles().map((title) => title.slice(-5))).to.deep.equal(['09:20']);
    await turn(NINE + 3 * 86_400 - 3_600);
    expect(titles().map((title) => title.slice(-13))).to.deep.equal(['Jan 05, 09:20', 'Jan 07, 09:55']);
  });

  it('after the clock was set back, tasks go on without waiting for the old time, and none is created twice', async () => {
    await recurring('*/5 * * * *');
    for (const minute of [5, 10, 5, 10]) await turn(NINE + minute * 60);
    expect(titles().map((title) => title.slice(-5))).to.deep.equal(['09:05', '09:10']);
    await turn(NINE + 365 * 86_400);
    await turn(NINE + 15 * 60);
    expect(titles().map((title) => title.slice(-5))).to.deep.equal(['09:05', '09:10', '09:00', '09:15']);
  });

  it('schedules follow the time zone', async () => {
    await recurring('0 10 * * *');
    await turn(NINE, 'UTC');
    expect(titles()).to.deep.equal([]);
    await turn(NINE, 'Europe/Berlin');
    expect(titles()).to.deep.equal(['Mend the roof - Jan 05']);
  });

  it('a process killed before any of its appends loses no task and creates none twice', async () => {
    await recurring('0 9 * * *');
    const before = world.written().length;
    for (const allowed of [0, 1, 2]) {
      world.forgetAfter(before);
      let appends = 0;
      world.beforeAppend = async () => {
        if (appends++ >= allowed) throw new Error('killed');
      };
      await turn(NINE + 5).catch(() => undefined);
      world.beforeAppend = async () => undefined;
      await turn(NINE + 65);
      await turn(NINE + 125);
      expect(titles(), `killed after ${allowed} appends`).to.deep.equal(['Mend the roof - Jan 05']);
      expect(world.written().filter(({ type }) => type === 'TaskRecurred')).to.have.length(1);
    }
  });

  it('a failing task does not delay the others, and is made up for later', async () => {
    await recurring('0 9 * * *');
    const other = taskCreated.draft({
      task_id: 501,
      task: { ...TASK, title: 'Water the plants', metadata: every('0 9 * * *') },
      source: 'api',
    });
    await world.process().record(taskStream(1, 501), { origin: testOrigin }, [other]);
    world.beforeAppend = async (stream) => {
      if (stream === taskStream(1, 500)) throw new Error('no luck');
    };
    const failure = await turn(NINE).then(
      () => undefined,
      (error: Error) => error.message,
    );
    expect(failure).to.equal('no luck');
    expect(titles()).to.deep.equal(['Water the plants - Jan 05']);
    world.beforeAppend = async () => undefined;
    await turn(NINE + 60);
    expect(titles()).to.have.members(['Water the plants - Jan 05', 'Mend the roof - Jan 05']);
  });

  it('no task is created for a title that exists, or again after its deletion', async () => {
    await recurring('0 9 * * *');
    await recurring('0 9 * * *', 501);
    await turn(NINE);
    expect(titles(), 'of two alike').to.have.length(1);
    const [child] = children();
    const gone = taskDeleted.draft({ task_id: child?.id as number, title: '', before: { ...TASK } });
    await world.process().record(taskStream(1, child?.id as number), { origin: testOrigin }, [gone]);
    // The other one finds its title free now; its own minute was never taken.
    await turn(NINE + 60);
    expect(titles()).to.have.length(1);
    expect(children()[0]?.id).not.to.equal(child?.id);
    await turn(NINE + 120);
    expect(children()).to.have.length(1);
  });
});
