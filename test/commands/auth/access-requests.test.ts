/** Access requests: the decisions, and the users that requests become when several processes approve them at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import {
  accessRequestDecider,
  approveAccess,
  decideApprove,
  decideReject,
  decideRequest,
  usernameFrom,
  withSuffix,
} from '../../../commands/auth/access-requests.ts';
import { userDecider } from '../../../commands/auth/users.ts';
import type { Commands } from '../../../commands/handler.ts';
import { accessRequested, accessRequestStream } from '../../../shared/events/auth/access-requests.ts';
import { userStream } from '../../../shared/events/auth/users.ts';
import { nameClaimVoided } from '../../../shared/events/claims.ts';
import type { Credentials } from '../../../shared/ports/credentials.ts';
import { type Draft, refusalOf, stateAfter } from '../../support/kit.ts';
import { gate, memoryWorld } from '../../support/memory-world.ts';
import { testOrigin } from '../../support/world.ts';

const context = () => ({ origin: testOrigin });
const noCredentials = {} as Credentials;

describe('access request decisions', () => {
  const profile = { sub: 'sub-1', email: 'ann@example.com', name: 'Ann', picture: null };
  const requests = (...drafts: readonly Draft[]) => stateAfter(accessRequestDecider, ...drafts);
  const asked = () => decideRequest(requests(), 5, profile);

  it('every attempt counts, and makes it pending again', () => {
    const approved = requests(...asked(), ...decideApprove(requests(...asked()), 5, 9, 'viewer', null));
    expect(approved).to.deep.include({ status: 'approved', userId: 9 });
    const again = requests(
      ...asked(),
      ...decideApprove(requests(...asked()), 5, 9, 'viewer', null),
      ...decideRequest(approved, 5, { ...profile, name: 'Ann Lee' }),
    );
    expect(again).to.deep.include({ status: 'pending', userId: 9, displayName: 'Ann Lee' });
  });
  it('approves and rejects from any status, and nothing that never was', () => {
    const rejected = requests(...asked(), ...decideReject(requests(...asked()), 5, 'no'));
    expect(rejected.status).to.equal('rejected');
    expect(decideApprove(rejected, 5, 9, 'admin', 'yes')[0]?.data).to.deep.equal({
      requestId: 5,
      email: 'ann@example.com',
      role: 'admin',
      userId: 9,
      note: 'yes',
    });
    expect(refusalOf(() => decideApprove(requests(), 5, 9, 'admin', null)).status).to.equal(404);
    expect(refusalOf(() => decideReject(requests(), 5, null)).status).to.equal(404);
  });
  it('a request whose account was given to another one is not made', () => {
    const voided = requests(nameClaimVoided.draft({ kind: 'google_account', name: 'x' }));
    expect(refusalOf(() => decideRequest(voided, 5, profile)).status).to.equal(409);
  });
  it('usernames come from the address', () => {
    expect(usernameFrom('Ann.Lee+x@example.com')).to.equal('ann.leex');
    expect(usernameFrom('ÄÖ@example.com')).to.equal('user');
    expect(usernameFrom(`${'a'.repeat(40)}@example.com`)).to.have.length(28);
    expect(withSuffix('a'.repeat(28), 0)).to.have.length(28);
    expect(withSuffix('a'.repeat(28), 12)).to.equal(`${'a'.repeat(24)}-12`);
  });
});

describe('approvals at once', () => {
  let world: ReturnType<typeof memoryWorld>;
  beforeEach(async () => {
    world = memoryWorld();
    await world.process().record(accessRequestStream(5), context(), [
      accessRequested.draft({
        requestId: 5,
        provider: 'google',
        email: 'ann@example.com',
        displayName: 'Ann',
        avatarUrl: null,
        providerId: 'sub-ann',
      }),
    ]);
  });
  const approve = (commands: Commands, role: 'viewer' | 'admin' = 'viewer') =>
    approveAccess(commands, context(), noCredentials, async () => [], {
      id: 5,
      role,
      note: null,
      knownUserId: undefined,
      callerId: 0,
    });
  const types = (type: string) => world.written().filter((event) => event.type === type);

  it('of one new request make one user, under one name, in every order', async () => {
    const made = world.written().length;
    for (let round = 0; round < 30; round++) {
      world.beforeAppend = () => sleep(Math.random() * 3);
      const [one, two, three] = await Promise.all([1, 2, 3].map(() => approve(world.process())));
      expect([two, three], `round ${round}`).to.deep.equal([one, one]);
      expect(types('UserCreated').map(({ data }) => data.userId)).to.deep.equal([one]);
      expect(types('NameClaimed').filter(({ data }) => data.kind === 'username')).to.have.length(1);
      world.forgetAfter(made);
    }
  });

  it('the one who loses does not look for another name', async () => {
    const [one, two] = [world.process(), world.process()];
    const slow = gate();
    // The loser has named the user and claimed nothing yet when the winner creates them.
    world.beforeAppend = async (stream, [event]) => {
      if (stream.startsWith('username-') && event?.type === 'NameClaimed') {
        world.beforeAppend = async () => undefined;
        await slow.wait();
      }
    };
    const loser = approve(one, 'viewer');
    await slow.reached;
    const winner = await approve(two, 'admin');
    const claims = types('NameClaimed').length;
    slow.open();
    expect(await loser).to.equal(winner);
    expect(types('NameClaimed')).to.have.length(claims);
    // The later approval's role counts, whoever created the user.
    const { state } = await one.load(userDecider, userStream(winner));
    expect(state).to.deep.include({ exists: true, role: 'admin', username: 'ann' });
  });
});
