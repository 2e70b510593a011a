import { expect } from 'chai';
import { fixture } from '../../support/fixture.ts';
import { startTasksWorld } from '../../support/worlds/tasks.ts';

describe('task branches', () => {
  const world = fixture(startTasksWorld);

  it('a task has no branch by default, and uses the repository of its project', async () => {
    const none = { branch: null, pr_number: null, pr_state: null };
    const { id } = await world.task();
    expect((await world.ask('GET', `/api/tasks/${id}/branch`)).body).to.deep.equal({ ...none, repo: null });
    await world.refused('POST', `/api/tasks/${id}/branch`, undefined, 400, /repository/);
    const hosted = await world.task({ project_id: await world.project('Hosted', 'HOST', 'a/b') });
    const path = `/api/tasks/${hosted.id}/branch`;
    expect((await world.ask('GET', path)).body).to.deep.equal({ ...none, repo: 'a/b' });
    await world.refused('POST', path, { action: 'create-pr' }, 400, /branch/);
    await world.refused('POST', path, {}, 503, /NO_SOURCE_HOST/);
    await world.refused('POST', path, { action: 'merge' }, 400, /action/);
    for (const method of ['GET', 'POST']) {
      await world.refused(method, '/api/tasks/999999/branch', undefined, 404);
      await world.refused(method, '/api/tasks/x/branch', undefined, 400, /id/);
    }
  });
});
