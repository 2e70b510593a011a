/** Commands on tasks that meet each other, in one process and in two: on a real store. */
import { expect } from 'chai';
import { createCommands } from '../../../commands/handler.ts';
import { reviewTask } from '../../../commands/quality/reviews.ts';
import { setStatuses, updateTask } from '../../../commands/tasks/changes.ts';
import { createTask, existing, taskDecider, taskStream } from '../../../commands/tasks/tasks.ts';
import type { FoundProject } from '../../../queries/projects/projects.ts';
import type { Reads } from '../../../queries/reads.ts';
import { catalogue } from '../../../shared/events/catalogue.ts';
import { fixture } from '../../support/fixture.ts';
import { anyRoom, outcomeOf } from '../../support/kit.ts';
import { openView, testDatabase, testOrigin } from '../../support/world.ts';

const GENERAL: FoundProject = { id: 1, name: 'General', prefix: 'TASK', slug: 'general', status: 'active' };
const OTHER: FoundProject = { id: 2, name: 'Other', prefix: 'OTH', slug: 'other', status: 'active' };
const projectOf = (id: number) => [GENERAL, OTHER].find((one) => one.id === id);
const lookupsOf = (reads: Reads) => ({
  reads,
  projects: {
    find: async (_workspace: number, id: number) => projectOf(id),
    general: async () => GENERAL,
    placeFor: async (_workspace: number, id: number | undefined) => projectOf(id ?? 1),
  },
  taskProjects: { at: async () => async (id: number) => projectOf(id) },
  recurring: anyRoom,
});
const NOW = 1_800_000_000;
const context = () => ({ origin: testOrigin });

const caller = { kind: 'global-key', role: 'admin', workspace: 1, agentName: null, agentId: null } as const;

describe('concurrent task commands', function () {
  this.timeout(180_000);
  let processes: ReturnType<typeof createCommands>[];
  const place = fixture(testDatabase);
  const view = fixture(() => openView(place.database, [...catalogue.values()], []));
  before(async () => {
    processes = [1, 2].map(() =>
      createCommands({
        store: view.store,
        counters: view.counters,
      }),
    );
  });

  const one = (n: number) => processes[n % 2] as (typeof processes)[number];
  const create = (n = 0, fields = {}) =>
    createTask(one(n), context(), lookupsOf(view.reads), { title: `t${n}`, ...fields }, 'Ann');
  const stateOf = async (id: number) =>
    existing((await one(0).load(taskDecider, taskStream(testOrigin.workspace, id))).state);
  const update = (n: number, id: number, fields: object) =>
    updateTask(one(n), context(), lookupsOf(view.reads), id, { fields, by: 'ann', now: NOW }, caller);

  it('each new task gets a unique id and a ticket number, without gaps', async () => {
    const tasks = await Promise.all(Array.from({ length: 60 }, (_, n) => create(n)));
    const sorted = (numbers: number[]) => [...new Set(numbers)].sort((a, b) => a - b);
    expect(sorted(tasks.map(({ id }) => id))).to.have.length(60);
    const numbers = sorted(tasks.map(({ project_ticket_no }) => project_ticket_no));
    expect(numbers).to.deep.equal(Array.from({ length: 60 }, (_, n) => (numbers[0] as number) + n));
  });

  // Two processes write as many events each: a change that was decided on others of its process, which came too late,
  // would fit behind those of the other one.
  it('concurrent changes of different fields are all kept', async () => {
    const { id } = await create();
    const fields = [
      { title: 'a' },
      { description: 'b' },
      { priority: 'low' },
      { tags: ['c'] },
      { resolution: 'd' },
      { assigned_to: 'ada' },
      { estimated_hours: 5 },
      { metadata: { e: 1 } },
    ];
    await Promise.all(fields.map((one_, n) => update(n, id, one_)));
    expect((await stateOf(id)).task).to.deep.include({
      title: 'a',
      description: 'b',
      priority: 'low',
      tags: ['c'],
      resolution: 'd',
      assigned_to: 'ada',
      status: 'assigned',
      estimated_hours: 5,
      metadata: { e: 1 },
    });
  });

  it('a task that is moved to one project concurrently moves once, under one number', async () => {
    const { id } = await create();
    await Promise.all(Array.from({ length: 8 }, (_, n) => update(n, id, { project_id: 2 })));
    const events = await view.store.readStream(taskStream(testOrigin.workspace, id));
    const moves = events.filter(({ data }) => (data.changed as string[] | undefined)?.includes('project_id'));
    expect(moves).to.have.length(1);
    expect((await stateOf(id)).task).to.include({ project_id: 2 });
  });

  it('no concurrent request sets a task to done after its approval was withdrawn', async () => {
    for (let round = 0; round < 10; round++) {
      const { id } = await create();
      const review = { reviewer: 'aegis', notes: 'n', counts: true };
      await reviewTask(one(0), context(), id, { ...review, status: 'approved' }, NOW, caller);
      const wanted = [{ id, status: 'done' as const }];
      const outcomes = await Promise.all([
        outcomeOf(reviewTask(one(1), context(), id, { ...review, status: 'rejected' }, NOW, caller)),
        outcomeOf(setStatuses(one(0), context(), wanted, NOW, caller)),
        outcomeOf(update(round, id, { status: 'done' })),
      ]);
      expect(outcomes[0]).to.equal('done');
      for (const outcome of outcomes.slice(1)) expect(outcome).to.be.oneOf(['done', '403']);
      // Whatever came first: an event of a way into done stands behind an approval that holds at that moment.
      let approved = false;
      for (const { type, data } of await view.store.readStream(taskStream(testOrigin.workspace, id))) {
        if (type === 'TaskReviewed') approved = data.status === 'approved';
        const to = (data.after ?? data.task) as { readonly status: string };
        if (type !== 'TaskReviewed' && to.status === 'done')
          expect(approved, `${type} of round ${round}`).to.equal(true);
      }
    }
  });

  it('a rejection within a bulk change states how many tasks have changed', async () => {
    const [good, bad] = [await create(), await create(1)];
    const verdict = { reviewer: 'aegis', notes: 'n', status: 'approved', counts: true } as const;
    for (const { id } of [good, bad]) await reviewTask(one(0), context(), id, verdict, NOW, caller);
    const commands = one(0);
    // The approval is withdrawn between the check and the change.
    const withdrawing: typeof commands = {
      ...commands,
      async execute(decider, stream, ...rest) {
        if (stream === taskStream(testOrigin.workspace, bad.id))
          await reviewTask(one(1), context(), bad.id, { ...verdict, status: 'rejected' }, NOW, caller);
        return commands.execute(decider, stream, ...rest);
      },
    };
    const wanted = [good, bad].map(({ id }) => ({ id, status: 'done' as const }));
    const refusal = await setStatuses(withdrawing, context(), wanted, NOW, caller).catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(Error).that.has.property('status', 403);
    expect((refusal as Error).message).to.match(new RegExp(`Task ${bad.id} .*Aegis.*1 of the other tasks has changed`));
  });
});
