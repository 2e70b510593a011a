/** Where tasks go: projects as commands look them up, in the database and in the memory of the projector. */
import { expect } from 'chai';
import { projectsProjection } from '../../../projections/projects/projects.ts';
import { projectDirectory } from '../../../queries/projects/projects.ts';
import {
  projectArchived,
  projectCreated,
  projectDeletionBegun,
  projectRestored,
  projectUpdated,
} from '../../../shared/events/projects/projects.ts';
import type { ProjectDirectory } from '../../../shared/ports/projects.ts';
import { openReadModels, type ReadModels } from '../../support/rows.ts';

describe('queries of projects', () => {
  let models: ReadModels;
  let directory: ProjectDirectory;
  before(async () => {
    models = await openReadModels([projectsProjection]);
    directory = projectDirectory(models.reads);
  });
  after(() => models?.close());

  const about = (projectId: number, slug: string) => ({
    projectId,
    name: slug,
    slug,
    ticketPrefix: slug.toUpperCase(),
  });
  const created = (projectId: number, slug: string) =>
    projectCreated.draft({
      ...about(projectId, slug),
      description: null,
      githubRepo: null,
      deadline: null,
      color: null,
    });
  const placeOf = async (id?: number) => (await directory.placeFor(1, id))?.slug;

  it('a task goes to the project that was asked for while that is active, else to the general one', async () => {
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

  it('the general project is found as it is now, in its own workspace', async () => {
    const changes = { name: 'All' };
    await models.tell(projectUpdated.draft({ ...about(8, 'general'), changes }));
    expect((await directory.general(1))?.slug).to.equal('general');
    expect((await directory.general(1))?.name).to.equal('All');
    expect(await directory.general(2)).to.equal(undefined);
  });
});
