import { expect } from 'chai';
import { createUser } from '../../../commands/auth/registration.ts';
import { decideCreate, firstAdmin, NAME_LOST } from '../../../commands/auth/users.ts';
import { userNameClaims } from '../../../commands/names.ts';
import { userDeleted } from '../../../shared/events/auth/users.ts';
import { nameClaimVoided } from '../../../shared/events/claims.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import { ann, created, given, OLD } from '../../support/ann.ts';
import { authMemory } from '../../support/auth-memory.ts';
import { failureOf, outcomeOf } from '../../support/kit.ts';

describe('user decisions', () => {
  describe('creation', () => {
    it('creates a user and records the credential', () => {
      const [event] = decideCreate(given().state, 7, ann, OLD);
      expect(event).to.deep.equal(created());
    });
    it('rejects an id that is or was in use', () => {
      given(created()).when(decideCreate, 7, ann, OLD).thenRefuses(409);
      const gone = given(created(), userDeleted.draft({ user_id: 7, username: 'ann' }));
      gone.when(decideCreate, 7, ann, OLD).thenRefuses(409);
    });
    it('rejects a user whose intended name has been lost to another', () => {
      const voided = given(nameClaimVoided.draft({ kind: 'name', name: 'ann' }));
      voided.when(decideCreate, 7, ann, OLD).thenRefuses(NAME_LOST);
    });
  });

  describe('unique names', () => {
    it('are held by an existing user, and never by a deleted user', () => {
      const [{ kind } = expect.fail()] = userNameClaims('all', 'ann');
      const held = (name: string, ...events: EventDraft[]) => kind.holds(given(...events).state, name, 'all');
      expect(held('ann')).to.equal('not yet');
      expect(held('ann', created())).to.equal('yes');
      expect(held('bob', created())).to.equal('never');
      expect(held('ann', created(), userDeleted.draft({ user_id: 7, username: 'ann' }))).to.equal('never');
      expect(held('ann', nameClaimVoided.draft({ kind: 'name', name: 'ann' }))).to.equal('never');
    });
    it('treat any existing user as the holder of the first admin claim', () => {
      expect(firstAdmin.holds(given().state, 'first', 'all')).to.equal('not yet');
      expect(
        firstAdmin.holds(given(nameClaimVoided.draft({ kind: 'first_admin', name: 'first' })).state, 'first', 'all'),
      ).to.equal('never');
      expect(firstAdmin.holds(given(created()).state, 'first', 'all')).to.equal('yes');
      expect(
        firstAdmin.holds(given(created(), userDeleted.draft({ user_id: 7, username: 'ann' })).state, 'first', 'all'),
      ).to.equal('yes');
    });
  });
});

describe('creation of a user', () => {
  const PASSWORD = 'a long enough password';

  it('assigns an id and stores the name and the password that the event refers to', async () => {
    const auth = authMemory();
    const [one, two] = [await auth.make({}, PASSWORD), await auth.make({ username: 'ben' })];
    expect([one, two]).to.deep.equal([1, 2]);
    expect(await auth.stateOf(one)).to.include({ username: 'ann', workspace: 3 });
    expect([...auth.credentials.passwords().keys()]).to.deep.equal([(await auth.stateOf(one)).credential_id]);
    expect((await auth.stateOf(two)).credential_id).to.equal(null);
    const places = auth.world.written().map((event) => (event as { meta?: { workspace: number } }).meta?.workspace);
    expect(new Set(places), 'all is recorded where the user belongs').to.deep.equal(new Set([3]));
  });

  it('is rejected for a taken or invalid name, and leaves no password', async () => {
    const auth = authMemory();
    await auth.make();
    expect(await outcomeOf(auth.make({}, PASSWORD))).to.equal('NAME_TAKEN');
    expect(await outcomeOf(auth.make({ username: 'api' }, PASSWORD))).to.equal('400');
    expect(auth.credentials.passwords().size).to.equal(0);
    const error = await failureOf(auth.make({ username: 'api' }));
    expect(error).to.match(/^username: /);
  });

  it('keeps the password if the outcome of the append is unknown', async () => {
    const auth = authMemory();
    auth.world.breakStreams();
    expect(await failureOf(auth.make({}, PASSWORD))).to.match(/the disk is full/);
    expect([...auth.credentials.passwords().values()]).to.deep.equal([PASSWORD]);
  });

  it('must create the first user if the caller requires it', async () => {
    const auth = authMemory();
    const first = (username: string) =>
      createUser(
        auth.commands,
        auth.context(),
        auth.credentials.store,
        { ...ann, username, display_name: null },
        null,
        { first: true },
      );
    await first('one');
    await auth.make({ username: 'two' });
    expect(await outcomeOf(first('three'))).to.equal('NAME_TAKEN');
    expect(auth.events('UserCreated').map(({ data }) => data.username)).to.deep.equal(['one', 'two']);
    const claimed = auth.events('NameClaimed').filter(({ data }) => data.kind === 'first_admin');
    expect(claimed.map(({ data }) => data.owner)).to.deep.equal(['user-1']);
  });

  it('fails if closing the setup fails for another reason than being closed already', async () => {
    const auth = authMemory();
    auth.world.breakStreams('first_admin');
    expect(await failureOf(auth.make())).to.match(/the disk is full/);
    expect(auth.events('UserCreated')).to.deep.equal([]);
  });
});
