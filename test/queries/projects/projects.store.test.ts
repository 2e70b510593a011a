/** Where tasks go: projects as commands look them up, in the database and in the memory of the projector. */
import { expect } from 'chai';
import { projectsProjection } from '../../../projections/projects/projects.ts';
import type { ProjectDirectory } from '../../../queries/projects/projects.ts';
import { projectDirectory } from '../../../queries/projects/projects.ts';
import { createTaskProjects } from '../../../queries/projects/tickets.ts';
import {
  projectArchived,
  projectCreated,
  projectDeletionBegun,
  projectRestored,
  projectUpdated,
} from '../../../shared/events/projects/projects.ts';
import type { ReadAt } from '../../../shared/ports/read-models.ts';
import { readModels } from '../../support/rows.ts';

describe('project queries', () => {
  let directory: ProjectDirectory;
  const models = readModels([projectsProjection]);
  before(async () => {
    directory = projectDirectory(models.reads);
  });

  const about = (projectId: number, slug: string) => ({
    project_id: projectId,
    name: slug,
    slug,
    ticket_prefix: slug.toUpperCase(),
  });
  const created = (projectId: number, slug: string) =>
    projectCreated.draft({
      ...about(projectId, slug),
      description: null,
      github_repo: null,
      deadline: null,
      color: null,
    });
  const placeOf = async (id?: number) => (await directory.placeFor(1, id))?.slug;

  it('place a task in the requested project if that is active, otherwise in the general one', async () => {
    expect(await placeOf()).to.equal(undefined);
    await models.tell(created(7, 'api'), created(8, 'general'), created(9, 'web'));
    expect([await placeOf(), await placeOf(7), await placeOf(70)]).to.deep.equal(['general', 'api', 'general']);
    await models.tell(projectArchived.draft(about(7, 'api')));
    expect(await placeOf(7)).to.equal('general');
    expect((await directory.find(1, 7))?.slug).to.equal('api');
    await models.tell(projectRestored.draft(about(7, 'api')), projectDeletionBegun.draft(about(9, 'web')));
    expect([await placeOf(7), await placeOf(9)]).to.deep.equal(['api', 'general']);
    expect((await directory.find(1, 9))?.slug).to.equal(undefined);
  });

  it('find the current general project in its own workspace', async () => {
    const changes = { name: 'All' };
    await models.tell(projectUpdated.draft({ ...about(8, 'general'), changes }));
    expect((await directory.general(1))?.slug).to.equal('general');
    expect((await directory.general(1))?.name).to.equal('All');
    expect(await directory.general(2)).to.equal(undefined);
  });

  it('show the current project of a task, even a deleted one, and reload it after a change', async () => {
    let stamp = 'first';
    const waited: ReadAt[] = [];
    const freshness = {
      async stamp(_names: readonly string[], _workspace: unknown, at: ReadAt) {
        waited.push(at);
        return { value: stamp, position: 0 };
      },
    };
    const projects = createTaskProjects({ reads: models.reads, freshness });
    const shown = async (id: number, workspace = 1) => (await projects.at(workspace, { position: 5 }))(id);
    await models.tell(created(11, 'old'));
    expect(await shown(11)).to.deep.equal({ name: 'old', prefix: 'OLD' });
    expect([await shown(11, 2), await shown(12)], 'of another workspace, or none').to.deep.equal([
      undefined,
      undefined,
    ]);
    await models.tell(projectUpdated.draft({ ...about(11, 'old'), changes: { name: 'New', ticket_prefix: 'NEW' } }));
    expect(await shown(11), 'as long as the read model stands still').to.deep.equal({ name: 'old', prefix: 'OLD' });
    stamp = 'second';
    expect(await shown(11)).to.deep.equal({ name: 'New', prefix: 'NEW' });
    await models.tell(projectDeletionBegun.draft(about(11, 'old')));
    stamp = 'third';
    expect(await shown(11)).to.deep.equal({ name: 'New', prefix: 'NEW' });
    expect(waited.every(({ position }) => position === 5)).to.equal(true);
    const anew = await createTaskProjects({ reads: models.reads }).at(1, {});
    expect(await anew(11)).to.deep.equal({ name: 'New', prefix: 'NEW' });
  });
});
