/** The first user of a deployment. */
import { expect } from 'chai';
import { setUp } from '../../../commands/auth/setup.ts';
import { authMemory } from '../../support/auth-memory.ts';
import { outcomeOf } from '../../support/kit.ts';

describe('first-run setup', () => {
  const admin = { username: 'root', password: 'a long enough password', display_name: undefined };

  it('creates an approved admin of the default workspace, recorded as the actor, and signs them in', async () => {
    const auth = authMemory();
    const { user, token } = await setUp(auth.parts, auth.context(), admin);
    expect(auth.credentials.sessions().map((one) => [one.token, one.session.userId])).to.deep.equal([[token, user.id]]);
    expect(await auth.stateOf(user.id)).to.deep.include({
      username: 'root',
      display_name: 'Root',
      role: 'admin',
      provider: 'local',
      is_approved: true,
      tenant: 1,
      workspace: 1,
    });
    expect([...auth.credentials.passwords().values()]).to.deep.equal([admin.password]);
    const [created] = auth.events('UserCreated');
    expect(created?.data).to.include({ source: 'setup' });
    expect((created as { meta?: unknown }).meta).to.deep.include({
      actor: { type: 'user', id: user.id, name: 'root' },
    });
    expect(auth.world.written().at(-1)).to.deep.include({ type: 'UserSignedIn' });
  });

  it('stores the display name', async () => {
    const auth = authMemory();
    const { user } = await setUp(auth.parts, auth.context(), { ...admin, display_name: 'The Boss' });
    expect((await auth.stateOf(user.id)).display_name).to.equal('The Boss');
  });

  it('is rejected once a user has existed, and for the slower of two requests', async () => {
    const auth = authMemory();
    await setUp(auth.parts, auth.context(), admin);
    expect(await outcomeOf(setUp(auth.parts, auth.context(), { ...admin, username: 'other' }))).to.equal('403');
    // A read model that is behind does not let a second one in.
    const parts = { ...auth.parts, users: { ...auth.parts.users, wasSetUp: async () => false } };
    const late = await outcomeOf(setUp(parts, auth.context(), { ...admin, username: 'other' }));
    expect(late).to.equal('NAME_TAKEN');
    expect(auth.events('UserCreated')).to.have.length(1);
    expect([...auth.credentials.passwords().values()], 'no password of a user who was not made').to.have.length(1);
  });

  it('is closed by any first user', async () => {
    const auth = authMemory();
    await auth.make();
    await auth.make({ username: 'second' });
    const parts = { ...auth.parts, users: { ...auth.parts.users, wasSetUp: async () => false } };
    expect(await outcomeOf(setUp(parts, auth.context(), admin))).to.equal('NAME_TAKEN');
    expect(auth.events('NameClaimed').filter(({ data }) => data.kind === 'first_admin')).to.have.length(1);
  });
});
