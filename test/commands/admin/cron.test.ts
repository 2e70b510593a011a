import { expect } from 'chai';
import {
  CRON_STREAM,
  type CronJob,
  cloneJob,
  cronDecider,
  decideAdd,
  decideAskedRun,
  decideClone,
  decideDueRun,
  dueOf,
  MAX_JOBS,
  toggleJob,
  triggerJob,
} from '../../../commands/admin/cron.ts';
import { runDueJobs } from '../../../commands/schedules/admin/cron.ts';
import type { ProjectDirectory } from '../../../queries/projects/projects.ts';
import { staggerOf } from '../../../shared/cron.ts';
import { cronJobAdded, cronJobToggled, cronRunEnded, cronRunStarted } from '../../../shared/events/admin/cron.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import { tenantStream } from '../../../shared/events/super/tenants.ts';
import { type TaskData, taskDeleted } from '../../../shared/events/tasks/tasks.ts';
import { workspaceCreated } from '../../../shared/events/workspaces/workspaces.ts';
import { givenFor, timeOf } from '../../support/kit.ts';
import { memoryWorld, repeatedRequest } from '../../support/memory-world.ts';
import { testOrigin } from '../../support/world.ts';

const added = cronJobAdded.draft({ name: 'a', schedule: '* * * * *', command: 'purge_logs', enabled: true });
const state = givenFor(cronDecider, added);
const now = timeOf(1) + 600_000;
const dueAt = Math.floor(now / 60_000) * 60;
const hour = cronJobAdded.draft({ ...added.data, schedule: '*/10 * * * *' });
/** A full hour after the job was added. */
const begin = Math.ceil(timeOf(1) / 3_600_000) * 3_600;
const started = cronRunStarted.draft({ name: 'a', run: 1, due_at: dueAt, previous_due_at: null });
const ended = cronRunEnded.draft({ name: 'a', run: 1, ok: true, message: '', duration_ms: 1 });

describe('commands: scheduled jobs', () => {
  it('a due minute is claimed once', () => {
    state().when(decideDueRun, 'a', { due_at: dueAt, previous_due_at: null }, now).then(started);
    state(started, ended).when(decideDueRun, 'a', { due_at: dueAt, previous_due_at: null }, now).then();
    expect(
      decideDueRun(state(started, ended).state, 'a', { due_at: dueAt + 60, previous_due_at: null }, now),
    ).to.have.length(1);
  });

  it('there are at most a hundred jobs, and none more by cloning; one may be replaced', () => {
    const many = Array.from({ length: MAX_JOBS }, (_, n) => cronJobAdded.draft({ ...added.data, name: `job-${n}` }));
    const full = givenFor(cronDecider, ...many)();
    const refused = /100 scheduled jobs already, which is the limit/;
    expect(() => decideAdd(full.state, added.data)).to.throw(refused);
    expect(() => decideClone(full.state, 'job-7')).to.throw(refused);
    expect(decideAdd(full.state, { ...added.data, name: 'job-7' })).to.have.length(1);
    expect(decideClone(state().state, 'a')[0]?.data).to.include({ name: 'a (copy)', schedule: '* * * * *' });
  });

  it('no job is due before it was created, while it is disabled, or while it is running', () => {
    const [job] = state().state.jobs;
    if (!job) throw new Error('there is no job');
    expect(dueOf(job, 'UTC', timeOf(1))).to.equal(undefined);
    expect(dueOf(job, 'UTC', now)?.due_at).to.equal(dueAt);
    const off = state(cronJobToggled.draft({ name: 'a', enabled: false }));
    off.when(decideDueRun, 'a', { due_at: dueAt, previous_due_at: null }, now).then();
    const running = state(started);
    running.when(decideDueRun, 'a', { due_at: dueAt + 60, previous_due_at: null }, timeOf(3)).then();
    running.when(decideAskedRun, 'a', timeOf(3)).thenRefuses(409);
  });

  it('a request to switch or clone a job that is repeated gets the same response', async () => {
    const commands = memoryWorld().process();
    await commands.execute(cronDecider, CRON_STREAM, { origin: testOrigin }, (jobs) => decideAdd(jobs, added.data));
    const toggling = repeatedRequest();
    for (const attempt of ['first', 'second'])
      expect(await toggleJob(commands, toggling(), 'a'), attempt).to.equal(false);
    expect(await toggleJob(commands, { origin: testOrigin }, 'a', false), 'no change').to.equal(false);
    const enabling = repeatedRequest();
    for (const attempt of ['first', 'second'])
      expect(await toggleJob(commands, enabling(), 'a'), attempt).to.equal(true);
    const cloning = repeatedRequest();
    for (const attempt of ['first', 'second'])
      expect(await cloneJob(commands, cloning(), 'a'), attempt).to.equal('a (copy)');
  });

  it('a time zone shifts the hours of a job, and a stagger its starting second', () => {
    const at = Date.UTC(2026, 6, 1, 2) / 1_000;
    const daily = cronJobAdded.draft({ ...added.data, name: 'b', schedule: '0 4 * * *', timezone: 'Europe/Berlin' });
    const [, berlin] = state(daily).state.jobs;
    if (!berlin) throw new Error('there is no job');
    const job = { ...berlin, since: at - 3_600 };
    expect(dueOf(job, 'UTC', at * 1_000)?.due_at).to.equal(at);
    expect(dueOf({ ...job, timezone: undefined }, 'UTC', at * 1_000)).to.equal(undefined);
    const late = staggerOf('b', 600);
    expect(late).to.be.within(60, 600);
    const spread = { ...job, stagger_seconds: 600 };
    expect(dueOf(spread, 'UTC', (at + late - 1) * 1_000)).to.equal(undefined);
    expect(dueOf(spread, 'UTC', (at + late) * 1_000)?.due_at).to.equal(at);
  });

  it('times missed while no worker was running have one run, for the latest of them, which is late', () => {
    const hourly = cronJobAdded.draft({ ...added.data, schedule: '0 * * * *' });
    const { jobs } = givenFor(cronDecider, hourly)().state;
    const later = (dueAt - (dueAt % 3_600) + 3 * 86_400 + 600) * 1_000;
    const due = dueOf(jobs[0] as CronJob, 'UTC', later);
    expect(due).to.deep.equal({ due_at: later / 1_000 - 600, previous_due_at: later / 1_000 - 4_200, late_by: 600 });
    const soon = dueOf(jobs[0] as CronJob, 'UTC', later - 590_000);
    expect(soon).to.deep.equal({ due_at: later / 1_000 - 600, previous_due_at: later / 1_000 - 4_200 });
  });

  it('after the clock was set back, times that have had a run have none again, and others have theirs', () => {
    const runs: number[] = [];
    let current = givenFor(cronDecider, hour)().state;
    /** One turn, at a time in minutes from the beginning. */
    function turn(minute: number): void {
      const at = (begin + minute * 60) * 1_000;
      const due = dueOf(current.jobs[0] as CronJob, 'UTC', at);
      if (due === undefined) return;
      const drafts = decideDueRun(current, 'a', due, at);
      if (drafts.length > 0) runs.push((due.due_at - begin) / 60);
      const events = [
        ...drafts,
        cronRunEnded.draft({ name: 'a', run: runs.length, ok: true, message: '', duration_ms: 1 }),
      ];
      current = givenFor(cronDecider, hour, ...past, ...events)().state;
      past.push(...events);
    }
    const past: EventDraft[] = [];
    for (let minute = 1; minute <= 30; minute++) turn(minute);
    expect(runs).to.deep.equal([0, 10, 20, 30]);
    for (let minute = 1; minute <= 45; minute++) turn(minute);
    expect(runs, 'set back by half an hour').to.deep.equal([0, 10, 20, 30, 40]);
    const year = 365 * 24 * 60;
    turn(year);
    for (let minute = 46; minute <= 60; minute++) turn(minute);
    expect(runs, 'a year ahead for a moment').to.deep.equal([0, 10, 20, 30, 40, year, 50, 60]);
    turn(year);
    expect(runs).to.have.length(8);
  });

  it('the next run ends a run that was lost with its process', () => {
    const later = timeOf(2) + 11 * 60_000;
    const [lost, next] = decideAskedRun(state(started).state, 'a', later);
    expect(lost?.data).to.include({ run: 1, ok: false });
    expect(next?.data).to.include({ run: 2, due_at: null });
  });
});

describe('commands: scheduled jobs that create tasks', () => {
  it('a run that has not created its task is never given up for the next run', () => {
    const told = cronJobAdded.draft({ ...added.data, task: { workspace: 1, agent: null } });
    const late = timeOf(2) + 60 * 60_000;
    const given = givenFor(cronDecider, told);
    const running = given(
      cronRunStarted.draft({ name: 'a', run: 1, due_at: dueAt, previous_due_at: null, task_id: 5 }),
    );
    running.when(decideDueRun, 'a', { due_at: dueAt + 60, previous_due_at: null, task_id: 6 }, late).then();
    running.when(decideAskedRun, 'a', late, 6).thenRefuses(409);
    expect(
      decideDueRun(given().state, 'a', { due_at: dueAt, previous_due_at: null }, late),
      'without an id',
    ).to.deep.equal([]);
    expect(
      decideDueRun(state().state, 'a', { due_at: dueAt, previous_due_at: null, task_id: 6 }, late),
      'of a job that makes none',
    ).to.deep.equal([]);
  });

  const MIDNIGHT = Date.UTC(2026, 6, 1);
  const job = { name: 'Water the plants', schedule: '* * * * *', command: 'All of them.', enabled: true };
  const project = { id: 3, name: 'General', prefix: 'TASK', status: 'active' };
  const projects = { placeFor: async () => project } as unknown as ProjectDirectory;
  const context = { origin: testOrigin };

  /** A log with such a job, and processes that look at it at a time that the test sets. */
  async function worldWith(task: { readonly workspace: number; readonly agent: string | null }) {
    let at = MIDNIGHT;
    const world = memoryWorld(() => at);
    const workspace = { tenant_id: 1, workspace_id: 1, slug: 'default', name: 'Default', brand: null, main: true };
    await world
      .process()
      .record(tenantStream(1), context, [workspaceCreated.draft({ ...workspace, isolation: 'shared' })]);
    await world.process().record(CRON_STREAM, context, [cronJobAdded.draft({ ...job, task })]);
    const process = () => {
      const run = async () => expect.fail('no task of the service');
      const work = { commands: world.process(), projects, run, now: () => at };
      return { look: () => runDueJobs(work, 'UTC'), trigger: () => triggerJob(work, context, job.name) };
    };
    const tasks = () => world.written().filter(({ type }) => type === 'TaskCreated');
    const ends = () => world.written().filter(({ type }) => type === 'CronRunEnded');
    const later = (minutes: number) => {
      at += minutes * 60_000;
    };
    return { world, process, tasks, ends, later };
  }
  const taskOf = ({ data }: { readonly data: Readonly<Record<string, unknown>> }) => data.task as TaskData;

  it('each due time yields one task, however many processes check it', async () => {
    const { process, tasks, ends, later } = await worldWith({ workspace: 1, agent: 'ada' });
    const all = [process(), process(), process()];
    for (let minute = 1; minute <= 3; minute++) {
      later(1);
      await Promise.all([...all, ...all].map(({ look }) => look()));
      expect(tasks()).to.have.length(minute);
    }
    const [first] = tasks().map(taskOf);
    expect(first).to.include({
      ...{ title: job.name, description: job.command, assigned_to: 'ada', status: 'assigned', created_by: 'scheduler' },
    });
    expect(tasks().map((one) => taskOf(one).metadata.cron_due_at)).to.deep.equal(
      [1, 2, 3].map((minute) => MIDNIGHT / 1_000 + minute * 60),
    );
    expect(ends().map(({ data }) => [data.run, data.ok])).to.deep.equal([
      [1, true],
      [2, true],
      [3, true],
    ]);
  });

  it('a job without an agent creates its task for the queue', async () => {
    const { process, tasks, later } = await worldWith({ workspace: 1, agent: null });
    later(1);
    await process().look();
    expect(tasks().map(taskOf)[0]).to.include({ assigned_to: null, status: 'inbox' });
  });

  it('if a process dies at any step, the next one creates the task once', async () => {
    for (const dies of ['TaskCreated', 'CronRunEnded']) {
      for (const written of [false, true]) {
        const { world, process, tasks, ends, later } = await worldWith({ workspace: 1, agent: null });
        later(1);
        let dead = false;
        world.afterAppend = async (_stream, events) => {
          if (!dead && written && events.some(({ type }) => type === dies)) {
            dead = true;
            throw new Error('killed');
          }
        };
        world.beforeAppend = async (_stream, events) => {
          if (!dead && !written && events.some(({ type }) => type === dies)) {
            dead = true;
            throw new Error('killed');
          }
        };
        const outcome = await process()
          .look()
          .catch((error: Error) => error.message);
        expect(outcome, dies).to.equal('killed');
        await Promise.all([process().look(), process().look()]);
        expect(tasks(), `${dies} ${written}`).to.have.length(1);
        expect(ends()).to.have.length(1);
        later(1);
        await process().look();
        expect(tasks()).to.have.length(2);
      }
    }
  });

  it('a task that was deleted before its run ended is not created again', async () => {
    const { world, process, tasks, later } = await worldWith({ workspace: 1, agent: null });
    later(1);
    world.beforeAppend = async (_stream, events) => {
      if (events.some(({ type }) => type === 'CronRunEnded')) throw new Error('killed');
    };
    await process()
      .look()
      .catch(() => undefined);
    const [task] = tasks();
    const place = { status: 'inbox', priority: 'medium', assigned_to: null, project_id: 3 };
    world.beforeAppend = async () => undefined;
    const deleted = taskDeleted.draft({ task_id: task?.data.task_id as number, title: 'x', before: place });
    await world.process().record(task?.stream ?? '', context, [deleted]);
    await process().look();
    expect(tasks()).to.have.length(1);
  });

  it('a deleted workspace ends the run with the reason', async () => {
    const { process, tasks, ends, later } = await worldWith({ workspace: 7, agent: null });
    later(1);
    expect(await process().look()).to.deep.equal({ runs: 1, failed: 1 });
    expect(tasks()).to.deep.equal([]);
    expect(ends()[0]?.data).to.include({ ok: false });
    expect(ends()[0]?.data.message).to.match(/no workspace 7/);
  });

  it('a run on request also creates a task', async () => {
    const { process, tasks } = await worldWith({ workspace: 1, agent: null });
    const { ok, message } = await process().trigger();
    expect({ ok, message }).to.deep.equal({ ok: true, message: `Task ${tasks()[0]?.data.task_id} was made.` });
    await process().trigger();
    expect(tasks()).to.have.length(2);
  });
});
