/** Commands beside a running service: their reads wait for events that concern them, not for idle checkpoints. */
import { expect } from 'chai';
import { withCore } from '../../../infra/cli/with-core.ts';
import { IdleCheckpoints } from '../../../infra/following/idle.ts';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { usersProjection } from '../../../projections/auth/users.ts';
import { inWorkspace } from '../../../queries/reads.ts';
import { atHead } from '../../../shared/ports/read-models.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf, call, startTestService } from '../../support/service.ts';

describe('a command beside a running service', () => {
  const service = fixture(() => startTestService());
  const { store } = IdleCheckpoints.prototype;
  const { DATA_DIR } = process.env;
  before(() => {
    // The service stores no checkpoint without rows.
    IdleCheckpoints.prototype.store = async () => undefined;
    process.env.DATA_DIR = service.config.dataDir;
  });
  after(() => {
    IdleCheckpoints.prototype.store = store;
    if (DATA_DIR === undefined) delete process.env.DATA_DIR;
    else process.env.DATA_DIR = DATA_DIR;
  });

  it('reads at the head of the log while checkpoints of other read models are behind it', async () => {
    const { database, eventLog } = service.service.core;
    const add = async (path: string, body: object) => bodyOf(await call(service, 'POST', path, body), 200, 201);
    await add('/api/agents', { name: 'ada', role: 'tester' });
    await add('/api/auth/users', { username: 'zoe', password: 'a long password here', role: 'viewer' });
    await add('/api/projects', { name: 'Roof' });
    const [agents, users] = await withCore(
      async ({ reads }) => {
        const now = reads.at(atHead());
        return [
          await inWorkspace(now, agentsProjection, 'agents', 1).select('name').execute(),
          await inWorkspace(now, usersProjection, 'users', 1).select('username').orderBy('id').execute(),
        ] as const;
      },
      { project: true },
    );
    expect(agents.map(({ name }) => name)).to.deep.equal(['ada']);
    expect(users.map(({ username }) => username)).to.deep.equal(['admin', 'zoe']);
    const { rows } = await database.pool.query("SELECT position FROM service.checkpoints WHERE projection = 'agents'");
    expect(rows[0].position, 'it was not waited for').to.be.below(await eventLog.head());
  });
});
