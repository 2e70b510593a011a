/** Users whom a proxy names. */
import { expect } from 'chai';
import { createProxyUsers } from '../../../commands/auth/proxy-users.ts';
import { createLogger } from '../../../infra/logging.ts';
import { authMemory } from '../../support/auth-memory.ts';
import { failureOf } from '../../support/kit.ts';
import { testOrigin } from '../../support/world.ts';

describe('users named by a proxy', () => {
  const open = () => {
    const auth = authMemory();
    const parts = { commands: auth.commands, credentials: auth.credentials.store, log: createLogger('silent') };
    return { auth, create: createProxyUsers(parts, 'operator') };
  };

  it('are created by the proxy with the chosen role and without a password', async () => {
    const { auth, create } = open();
    await create('ann', testOrigin);
    const [created, ...others] = auth.events('UserCreated');
    expect(others).to.deep.equal([]);
    expect(created?.data).to.include({ username: 'ann', role: 'operator', source: 'proxy', credential_id: null });
    expect(created?.data).to.include({ provider: 'proxy', is_approved: true, tenant: 1, workspace: 1 });
    expect((created as { meta?: unknown }).meta).to.deep.include({ actor: { type: 'system', id: 0, name: 'proxy' } });
    expect(auth.credentials.passwords().size).to.equal(0);
    expect((await auth.stateOf(1)).display_name).to.equal('ann');
  });

  it('are created once by concurrent requests, even if another process was first', async () => {
    const { auth, create } = open();
    await Promise.all([create('ann', testOrigin), create('ann', testOrigin), create('bob', testOrigin)]);
    expect(auth.events('UserCreated').map(({ data }) => data.username)).to.have.members(['ann', 'bob']);
    expect(auth.events('NameClaimed').filter(({ data }) => data.kind === 'name')).to.have.length(4);
    await create('ann', testOrigin);
    expect(auth.events('UserCreated')).to.have.length(2);
  });

  it('are created by a later request after a failure, which the first request reports', async () => {
    const { auth, create } = open();
    auth.world.breakStreams();
    expect(await failureOf(create('ann', testOrigin))).to.match(/the disk is full/);
    auth.world.beforeAppend = async () => undefined;
    await create('ann', testOrigin);
    expect(auth.events('UserCreated')).to.have.length(1);
  });

  it('are not created under an invalid username', async () => {
    const { auth, create } = open();
    for (const name of ['api', 'a\nb']) await create(name, testOrigin);
    expect(auth.world.written()).to.deep.equal([]);
  });
});
