/** Access requests: the decisions, and the users that requests become when several processes approve them at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import {
  accessRequestDecider,
  approveAccess,
  decideApprove,
  decideReject,
  decideRequest,
  rejectAccess,
  requestAccess,
  usernameFrom,
  withSuffix,
} from '../../../commands/auth/access-requests.ts';
import { userDecider } from '../../../commands/auth/users.ts';
import type { Commands } from '../../../commands/handler.ts';
import { accessRequested, accessRequestStream } from '../../../shared/events/auth/access-requests.ts';
import { userDeleted, userStream } from '../../../shared/events/auth/users.ts';
import { nameClaimVoided } from '../../../shared/events/claims.ts';
import type { Credentials } from '../../../shared/ports/credentials.ts';
import { authMemory } from '../../support/auth-memory.ts';
import { givenFor, outcomeOf, sample } from '../../support/kit.ts';
import { memoryWorld } from '../../support/memory-world.ts';
import { testOrigin } from '../../support/world.ts';

const context = () => ({ origin: testOrigin });
const noCredentials = {} as Credentials;

describe('access request decisions', () => {
  const profile = { sub: 'sub-1', email: 'ann@example.com', name: 'Ann', picture: null };
  const requests = givenFor(accessRequestDecider);
  const asked = () => decideRequest(requests().state, 5, profile);

  it('count every attempt, which makes the request pending again', () => {
    const approved = requests(...asked(), ...decideApprove(requests(...asked()).state, 5, 9, 'viewer', null)).state;
    expect(approved).to.deep.include({ status: 'approved', user_id: 9 });
    const again = requests(
      ...asked(),
      ...decideApprove(requests(...asked()).state, 5, 9, 'viewer', null),
      ...decideRequest(approved, 5, { ...profile, name: 'Ann Lee' }),
    ).state;
    expect(again).to.deep.include({ status: 'pending', user_id: 9, display_name: 'Ann Lee' });
  });
  it('approve and reject from any status, but not an unknown request', () => {
    const rejected = requests(...asked(), ...decideReject(requests(...asked()).state, 5, 'no'));
    expect(rejected.state.status).to.equal('rejected');
    expect(decideApprove(rejected.state, 5, 9, 'admin', 'yes')[0]?.data).to.deep.equal({
      request_id: 5,
      email: 'ann@example.com',
      role: 'admin',
      user_id: 9,
      note: 'yes',
    });
    requests().when(decideApprove, 5, 9, 'admin', null).thenRefuses(404);
    requests().when(decideReject, 5, null).thenRefuses(404);
  });
  it('reject a request whose account was claimed by another request', () => {
    const voided = requests(nameClaimVoided.draft({ kind: 'google_account', name: 'x' }));
    voided.when(decideRequest, 5, profile).thenRefuses(409);
  });
  it('derive usernames from the email address', () => {
    expect(usernameFrom(['Ann.Lee+x@example.com'])).to.equal('ann.leex');
    expect(usernameFrom(['ÄÖ@example.com'])).to.equal('user');
    expect(usernameFrom([`${'a'.repeat(40)}@example.com`])).to.have.length(28);
    expect(withSuffix('a'.repeat(28), 0)).to.have.length(28);
    expect(withSuffix('a'.repeat(28), 12)).to.equal(`${'a'.repeat(24)}-12`);
  });
  it('derive usernames from the next name of an account if one is reserved or has no usable character', () => {
    for (const reserved of ['aegis', 'Admin', 'admin@example.com', 'system', 'oidc', '12345', '漢字'])
      expect(usernameFrom([reserved, 'ann@example.com', 'sub-1']), reserved).to.equal('ann');
    expect(usernameFrom(['aegis', 'admin@example.com', 'sub-1'])).to.equal('sub-1');
    expect(usernameFrom(['aegis', '12345'])).to.equal('user');
  });
});

describe('an approved request', () => {
  const profile = { sub: 'sub-ann', email: 'ann@example.com', name: null, picture: null };
  const open = async () => {
    const auth = authMemory();
    await requestAccess(auth.commands, context(), undefined, profile);
    const asked: unknown[] = [];
    const approve = (
      { known, ...request }: Partial<Parameters<typeof approveAccess>[4]> & { known?: number } = {},
      admins: readonly number[] = [],
    ) => {
      const userIdOf = async (...account: [sub: string, email: string]) => {
        asked.push(account);
        return known;
      };
      const reads = { admins: async () => admins, userIdOf };
      return approveAccess(auth.commands, context(), auth.credentials.store, reads, {
        id: 1,
        role: 'viewer',
        note: null,
        callerId: 0,
        ...request,
      });
    };
    return { auth, approve, asked };
  };

  it('creates a Google user in the default workspace, named after the email address', async () => {
    const { auth, approve } = await open();
    const id = await approve({ role: 'operator', note: 'welcome' });
    expect(await auth.stateOf(id)).to.deep.include({
      username: 'ann',
      display_name: 'ann@example.com',
      email: 'ann@example.com',
      role: 'operator',
      provider: 'google',
      provider_id: 'sub-ann',
      is_approved: true,
      tenant: 1,
      workspace: 1,
      credential_id: null,
    });
    expect(auth.events('UserCreated')[0]?.data).to.include({ source: 'access_request' });
    expect(auth.events('AccessRequestApproved')[0]?.data).to.include({
      user_id: id,
      role: 'operator',
      note: 'welcome',
    });
    expect(await approve({ role: 'operator' }), 'approved again: nothing is to be done').to.equal(id);
    expect(auth.events('UserUpdated')).to.deep.equal([]);
  });

  it('uses the next name if the first is taken or not allowed', async () => {
    const { auth, approve } = await open();
    await auth.make({ username: 'ann' });
    await auth.make({ username: 'ann-1' });
    expect((await auth.stateOf(await approve())).username).to.equal('ann-2');
    await requestAccess(auth.commands, context(), undefined, { ...profile, sub: 'sub-api', email: 'api@example.com' });
    const id = await approve({ id: 2 });
    expect((await auth.stateOf(id)).username).to.equal('user');
  });

  it('fails after two hundred names', async () => {
    const { auth, approve } = await open();
    for (let suffix = 0; suffix <= 200; suffix++) await auth.make({ username: withSuffix('ann', suffix) });
    expect(await outcomeOf(approve())).to.equal('NAME_TAKEN');
  });

  it('lets an existing user sign in with Google', async () => {
    const { auth, approve, asked } = await open();
    const ann = await auth.make({ email: 'ann@example.com', is_approved: false, role: 'viewer', workspace: 3 });
    expect(await approve({ role: 'admin', known: ann })).to.equal(ann);
    expect(asked.at(-1), 'looked for by account and address').to.deep.equal([profile.sub, profile.email]);
    expect(await auth.stateOf(ann)).to.include({
      provider: 'google',
      provider_id: 'sub-ann',
      role: 'admin',
      is_approved: true,
    });
    const [updated] = auth.events('UserUpdated');
    expect(updated?.data).to.include({ by: 'access_request', password_changed: false });
    expect((updated as { meta?: { workspace: number } }).meta?.workspace, 'where the user belongs').to.equal(3);
    expect(auth.events('UserCreated')).to.have.length(1);
  });

  it('cannot demote the last admin or the approver, and is not recorded in that case', async () => {
    const { auth, approve } = await open();
    const admin = await auth.make({ role: 'admin' });
    expect(await outcomeOf(approve({ known: admin }, [admin]))).to.equal('LAST_ADMIN');
    expect(await outcomeOf(approve({ known: admin, callerId: admin }))).to.equal('400');
    expect(auth.events('AccessRequestApproved')).to.deep.equal([]);
    expect(await approve({ known: admin, callerId: admin, role: 'admin' })).to.equal(admin);
    const other = await auth.make({ username: 'second', role: 'admin' });
    expect(await approve({ known: admin }, [admin, other])).to.equal(admin);
    expect((await auth.stateOf(admin)).role).to.equal('viewer');
  });

  it('creates another user if the first one was deleted', async () => {
    const { auth, approve } = await open();
    const first = await approve();
    const deleted = userDeleted.draft({ user_id: first, username: 'ann' });
    await auth.world.process().record(userStream(first), context(), [deleted]);
    const second = await approve();
    expect(second).to.not.equal(first);
    expect((await auth.stateOf(second)).exists).to.equal(true);
  });

  it('must exist: unknown and erased people cannot be approved or rejected', async () => {
    const { auth, approve } = await open();
    expect(await outcomeOf(approve({ id: 9 }))).to.equal('404');
    expect(await outcomeOf(rejectAccess(auth.commands, context(), { id: 9, note: null }))).to.equal('404');
    for (const [id, erased] of [
      [7, { email: null }],
      [8, { provider_id: null }],
    ] as const) {
      await auth.commands.record(accessRequestStream(id), context(), [
        sample(accessRequested, {
          request_id: id,
          provider: 'google',
          email: 'ann@example.com',
          provider_id: 'sub-ann',
          ...erased,
        }),
      ]);
      expect(await outcomeOf(approve({ id }))).to.equal('409');
    }
  });

  it('leaves the user unchanged if it is rejected instead', async () => {
    const { auth } = await open();
    await rejectAccess(auth.commands, context(), { id: 1, note: 'who?' });
    expect(auth.events('AccessRequestRejected').map(({ data }) => [data.request_id, data.note])).to.deep.equal([
      [1, 'who?'],
    ]);
    expect(auth.events('UserUpdated')).to.deep.equal([]);
  });
});

describe('concurrent approvals', () => {
  let world: ReturnType<typeof memoryWorld>;
  beforeEach(async () => {
    world = memoryWorld();
    await world.process().record(accessRequestStream(5), context(), [
      sample(accessRequested, {
        request_id: 5,
        provider: 'google',
        email: 'ann@example.com',
        display_name: 'Ann\u200b',
        provider_id: 'sub-ann',
      }),
    ]);
  });
  const approve = (commands: Commands, role: 'viewer' | 'admin' = 'viewer') =>
    approveAccess(
      commands,
      context(),
      noCredentials,
      { admins: async () => [], userIdOf: async () => undefined },
      {
        id: 5,
        role,
        note: null,
        callerId: 0,
      },
    );
  const types = (type: string) => world.written().filter((event) => event.type === type);

  it('of one new request create one user under one name, in any order', async () => {
    const made = world.written().length;
    for (let round = 0; round < 30; round++) {
      world.beforeAppend = () => sleep(Math.random() * 3);
      const [one, two, three] = await Promise.all([1, 2, 3].map(() => approve(world.process())));
      expect([two, three], `round ${round}`).to.deep.equal([one, one]);
      expect(types('UserCreated').map(({ data }) => data.user_id)).to.deep.equal([one]);
      expect(types('NameClaimed').filter(({ data }) => data.kind === 'name')).to.have.length(2);
      world.forgetAfter(made);
    }
  });

  it('do not make the loser try another name', async () => {
    const [one, two] = [world.process(), world.process()];
    // The loser has named the user and claimed nothing yet when the winner creates them.
    const slow = world.holdNext((stream, type) => stream.startsWith('name-') && type === 'NameClaimed');
    const loser = approve(one, 'viewer');
    await slow.reached;
    const winner = await approve(two, 'admin');
    const claims = types('NameClaimed').length;
    slow.open();
    expect(await loser).to.equal(winner);
    expect(types('NameClaimed')).to.have.length(claims);
    // The role of the later approval counts, even if the other one created the user.
    const { state } = await one.load(userDecider, userStream(winner));
    expect(state).to.deep.include({ exists: true, role: 'admin', username: 'ann', display_name: 'Ann' });
  });
});
