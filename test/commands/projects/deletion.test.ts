/** Deleting projects on a log in memory: killed at every step, gone on with by others, tasks that come at the last moment. */
import { expect } from 'chai';
import type { CommandContext, Commands } from '../../../commands/handler.ts';
import { createProject } from '../../../commands/projects/changes.ts';
import { type DeletionParts, decideMove, deleteProject } from '../../../commands/projects/deletion.ts';
import { GENERAL, type NewProject, projectStream } from '../../../commands/projects/projects.ts';
import { takeTickets } from '../../../commands/projects/tickets.ts';
import { finishDeletions } from '../../../commands/schedules/projects/deletion.ts';
import { taskDecider, taskStream } from '../../../commands/tasks/tasks.ts';
import type { FoundProject } from '../../../queries/projects/projects.ts';
import { projectDeleted, projectDeletionBegun } from '../../../shared/events/projects/projects.ts';
import { taskCreated, taskMoved } from '../../../shared/events/tasks/tasks.ts';
import { failureOf, givenFor, outcomeOf } from '../../support/kit.ts';
import { type MemoryWorld, memoryWorld } from '../../support/memory-world.ts';
import { created, deleted, TASK } from '../../support/tasks.ts';
import { testOrigin } from '../../support/world.ts';

const context = (): CommandContext => ({ origin: testOrigin });
const project = (name: string): NewProject => ({
  name,
  slug: name.toLowerCase(),
  ticket_prefix: name.toUpperCase(),
  description: null,
  github_repo: null,
  deadline: null,
  color: null,
});
const general: FoundProject = {
  id: 1,
  name: GENERAL.name,
  prefix: GENERAL.ticket_prefix,
  slug: GENERAL.slug,
  status: 'active',
};

/** A process: what it needs for deletions, with read models that follow from the log at once. */
function partsOf(world: MemoryWorld): DeletionParts & { readonly commands: Commands } {
  const ofType = (type: string) => world.written().filter((event) => event.type === type);
  const ids = (type: string) => ofType(type).map(({ data }) => data.project_id as number);
  const idsIn = (project: number) =>
    [...placesOf(world)].filter(([, place]) => place.project === project).map(([id]) => id);
  return {
    commands: world.process(),
    readModels: { reach: async () => undefined, has: async () => true },
    projects: { find: async () => undefined, general: async () => general, placeFor: async () => general },
    projectTasks: {
      idsIn: async (_, id, limit) => idsIn(id).slice(0, limit),
      async inDeletion() {
        const ended = new Set(ids(projectDeleted.type));
        return ids(projectDeletionBegun.type)
          .filter((id) => !ended.has(id) || idsIn(id).length > 0)
          .map((id) => ({ tenant: 1, workspace: 1, id }));
      },
    },
  };
}

/** Where each task is. */
function placesOf(world: MemoryWorld): Map<number, { readonly project: number; readonly project_ticket_no: number }> {
  const places = new Map<number, { project: number; project_ticket_no: number }>();
  for (const { type, data } of world.written()) {
    const id = data.task_id as number;
    if (type === taskCreated.type) {
      const { project_id: projectId, project_ticket_no } = data.task as {
        project_id: number;
        project_ticket_no: number;
      };
      places.set(id, { project: projectId, project_ticket_no });
    }
    if (type === taskMoved.type) {
      places.set(id, {
        project: (data.after as { project_id: number }).project_id,
        project_ticket_no: data.project_ticket_no as number,
      });
    }
  }
  return places;
}

async function makeTask(commands: Commands, taskId: number, projectId: number): Promise<void> {
  const ticketNo = await takeTickets(commands, 1, projectId);
  await commands.record(taskStream(1, taskId), context(), [
    taskCreated.draft({
      task_id: taskId,
      task: { ...TASK, project_id: projectId, project_ticket_no: ticketNo },
      source: 'api',
    }),
  ]);
}

/** The general project with one task, and project 2 with three. */
async function filledWorld(): Promise<{ readonly world: MemoryWorld; readonly parts: DeletionParts }> {
  const world = memoryWorld();
  const parts = partsOf(world);
  await createProject(parts.commands, context(), { ...project('General'), ...GENERAL });
  await createProject(parts.commands, context(), project('Site'));
  await makeTask(parts.commands, 10, 1);
  for (const id of [11, 12, 13]) await makeTask(parts.commands, id, 2);
  return { world, parts };
}

/** Every task is in the general project, under a number of its own; the names of the deleted project are free. */
async function expectDeleted(world: MemoryWorld, tasks: readonly number[]): Promise<void> {
  const places = placesOf(world);
  expect([...places.keys()]).to.have.members([...tasks]);
  expect([...places.values()].map((place) => place.project)).to.deep.equal(tasks.map(() => 1));
  expect(new Set([...places.values()].map(({ project_ticket_no: ticketNo }) => ticketNo)).size).to.equal(tasks.length);
  expect(places.get(10)?.project_ticket_no, 'the task that was there before').to.equal(1);
  expect(world.written().filter(({ type }) => type === projectDeleted.type)).to.have.length(1);
  const again = await outcomeOf(createProject(world.process(), context(), project('Site')));
  expect(again, 'a project of the same name').to.equal('done');
}

describe('deletion of a project', () => {
  it('moves its tasks to the general project, and frees its names', async () => {
    const { world, parts } = await filledWorld();
    await deleteProject(parts, context(), 2);
    expect(placesOf(world).get(11)?.project).to.equal(1);
    expect(await outcomeOf(deleteProject(parts, context(), 2))).to.equal('404');
    await expectDeleted(world, [10, 11, 12, 13]);
  });

  it('is resumed after a crash before any of its steps', async () => {
    const { world: counted, parts } = await filledWorld();
    const before = counted.written().length;
    await deleteProject(parts, context(), 2);
    const steps = counted.written().length - before;
    expect(steps).to.be.above(5);
    for (let step = 0; step < steps; step++) {
      const { world, parts: dying } = await filledWorld();
      let left = step;
      world.beforeAppend = async () => {
        if (left-- <= 0) throw new Error('killed');
      };
      const died = await deleteProject(dying, context(), 2).catch((error: Error) => error.message);
      world.beforeAppend = async () => undefined;
      const begun = world.written().some(({ type }) => type === projectDeletionBegun.type);
      // Freeing the names is best effort; before the first event nothing has happened.
      if (step === 0) expect(begun).to.equal(false);
      else if (died !== undefined) expect(died).to.equal('killed');
      if (begun) await finishDeletions(partsOf(world), Date.now() + 10_000);
      else await deleteProject(partsOf(world), context(), 2);
      await expectDeleted(world, [10, 11, 12, 13]);
    }
  });

  it('resumes from where it was if requested again', async () => {
    const { world, parts } = await filledWorld();
    let left = 2;
    world.beforeAppend = async () => {
      if (left-- <= 0) throw new Error('killed');
    };
    expect(await failureOf(deleteProject(parts, context(), 2))).to.equal('killed');
    world.beforeAppend = async () => undefined;
    await deleteProject(partsOf(world), context(), 2);
    await expectDeleted(world, [10, 11, 12, 13]);
  });

  it('loses no task that is placed in the project at the last moment or afterwards', async () => {
    const { world, parts } = await filledWorld();
    let late = false;
    world.beforeAppend = async (stream) => {
      if (late || stream !== taskStream(1, 13)) return;
      late = true;
      await makeTask(world.process(), 14, 2);
    };
    await deleteProject(parts, context(), 2);
    expect(late).to.equal(true);
    await makeTask(parts.commands, 15, 2);
    expect(placesOf(world).get(15)?.project).to.equal(2);
    await finishDeletions(partsOf(world), Date.now() + 10_000);
    await expectDeleted(world, [10, 11, 12, 13, 14, 15]);
    expect(await parts.projectTasks.inDeletion()).to.deep.equal([]);
  });

  it('moves each task once if several processes run it', async () => {
    const { world } = await filledWorld();
    await Promise.all([
      outcomeOf(deleteProject(partsOf(world), context(), 2)),
      outcomeOf(deleteProject(partsOf(world), context(), 2)),
      finishDeletions(partsOf(world), Date.now() + 10_000),
    ]);
    expect(world.written().filter(({ type }) => type === taskMoved.type)).to.have.length(3);
    await expectDeleted(world, [10, 11, 12, 13]);
  });

  it('leaves the rest to the next turn if its time is used up', async () => {
    const { world, parts } = await filledWorld();
    await parts.commands.record(projectStream(1, 2), context(), [
      projectDeletionBegun.draft({ project_id: 2, name: 'Site' }),
    ]);
    await finishDeletions(partsOf(world), Date.now() - 1);
    expect(placesOf(world).get(11)?.project).to.equal(2);
    await finishDeletions(partsOf(world), Date.now() + 10_000);
    await expectDeleted(world, [10, 11, 12, 13]);
  });

  it('does not prevent other deletions if it fails', async () => {
    const { world, parts } = await filledWorld();
    await createProject(parts.commands, context(), project('Shop'));
    await makeTask(parts.commands, 16, 3);
    for (const id of [2, 3]) {
      const begun = projectDeletionBegun.draft({ project_id: id, name: 'x' });
      await parts.commands.record(projectStream(1, id), context(), [begun]);
    }
    world.beforeAppend = async (stream) => {
      if (stream === taskStream(1, 12)) throw new Error('cannot be written');
    };
    const failure = await failureOf(finishDeletions(parts, Date.now() + 10_000));
    expect(failure).to.equal('cannot be written');
    expect([...placesOf(world)].filter(([, place]) => place.project !== 1).map(([id]) => id)).to.deep.equal([12]);
  });

  it('skips a task that has left the project meanwhile or was deleted', () => {
    const given = givenFor(taskDecider, created({ project_id: 2 }));
    const to = { project_id: 1, project_ticket_no: 8 };
    const [moved] = decideMove(given().state, 2, to);
    expect(moved?.data).to.deep.include({ task_id: 7, project_ticket_no: 8 });
    expect(moved?.data.after).to.deep.include({ project_id: 1, status: 'inbox' });
    given().when(decideMove, 3, to).then();
    given(deleted()).when(decideMove, 2, to).then();
  });
});
