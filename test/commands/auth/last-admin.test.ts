/** The last enabled admin of a tenant stays, even if several processes remove admins at the same moment. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { deleteUser, type Transfer, type UserChanges, updateUser } from '../../../commands/auth/changes.ts';
import { createUser } from '../../../commands/auth/registration.ts';
import { type NewUser, userDecider } from '../../../commands/auth/users.ts';
import type { Commands } from '../../../commands/handler.ts';
import { adminsStream } from '../../../shared/events/auth/last-admin.ts';
import { userCreated, userStream } from '../../../shared/events/auth/users.ts';
import { ROLES } from '../../../shared/identity.ts';
import type { Credentials } from '../../../shared/ports/credentials.ts';
import { newUser } from '../../support/ann.ts';
import { outcomeOf } from '../../support/kit.ts';
import { memoryWorld } from '../../support/memory-world.ts';
import { testOrigin } from '../../support/world.ts';

/** These tests sign in no user. */
const credentials = {
  removeSessions: async () => undefined,
  removePasswords: async () => undefined,
} as unknown as Credentials;

const context = () => ({ origin: testOrigin });

describe('the last admin', function () {
  this.timeout(20_000);
  let world: ReturnType<typeof memoryWorld>;
  let one: Commands;
  let two: Commands;
  beforeEach(() => {
    world = memoryWorld();
    one = world.process();
    two = world.process();
  });

  const make = (user: Partial<NewUser> = {}): Promise<number> =>
    createUser(one, context(), credentials, newUser(`user-${Math.random()}`, { role: 'admin', ...user }), null);
  /** Everybody who ever was: a read model may be that far behind. */
  const everybody = async () =>
    world
      .written()
      .filter(({ type }) => type === userCreated.type)
      .map(({ data }) => data.user_id as number);
  const remove = (commands: Commands, userId: number) =>
    outcomeOf(deleteUser(commands, context(), credentials, everybody, { user_id: userId, reach: 'all', callerId: 0 }));
  const update = (commands: Commands, userId: number, changes: UserChanges, transfer?: Transfer) =>
    outcomeOf(
      updateUser(commands, context(), credentials, everybody, {
        user_id: userId,
        workspace: 'all',
        callerId: 0,
        changes,
        password: null,
        by: 'admin',
        transfer,
      }),
    );
  const move = (commands: Commands, userId: number, tenant: number) =>
    update(commands, userId, {}, { to: { tenant, workspace: tenant + 10 }, reach: 'all' });
  async function adminsLeft(tenant = 1): Promise<number> {
    const states = await Promise.all(
      (await everybody()).map(async (id) => (await world.process().load(userDecider, userStream(id))).state),
    );
    return states.filter((s) => s.exists && s.is_approved && s.role === 'admin' && s.tenant === tenant).length;
  }

  it('cannot be deleted, disabled, demoted or moved; other admins can', async () => {
    const [ann, bob] = [await make(), await make()];
    await make({ role: 'operator' });
    await make({ is_approved: false });
    await make({ tenant: 2 });
    expect(await remove(one, bob)).to.equal('done');
    expect(await remove(two, ann)).to.equal('LAST_ADMIN');
    for (const role of ROLES.slice(0, 2)) expect(await update(two, ann, { role })).to.equal('LAST_ADMIN');
    expect(await update(one, ann, { is_approved: false })).to.equal('LAST_ADMIN');
    expect(await move(one, ann, 2)).to.equal('LAST_ADMIN');
    // What takes the tenant no admin is as it was.
    expect(await update(one, ann, { display_name: 'Ann' })).to.equal('done');
    const cid = await make();
    expect(await move(two, ann, 2)).to.equal('done');
    expect(await remove(one, cid)).to.equal('LAST_ADMIN');
    expect([await adminsLeft(1), await adminsLeft(2)]).to.deep.equal([1, 2]);
  });

  it('a user who is disabled and enabled again does not delay other changes', async () => {
    const [ann, bob] = [await make(), await make()];
    for (let round = 0; round < 3; round++) {
      expect(await update(one, ann, { is_approved: false })).to.equal('done');
      expect(await update(two, ann, { is_approved: true })).to.equal('done');
    }
    expect(await remove(two, bob)).to.equal('done');
    expect(world.written().filter(({ type }) => type === 'AdminRemovalVoided')).to.deep.equal([]);
  });

  it('a new admin counts at once, even if a process still knows the user as a viewer', async () => {
    const [ann, bob] = [await make(), await make({ role: 'viewer' })];
    expect(await update(one, bob, { role: 'admin' })).to.equal('done');
    // This process still knows them as a viewer.
    expect(await remove(one, ann)).to.equal('done');
    expect(await remove(two, bob)).to.equal('LAST_ADMIN');
  });

  it('is kept when two admins remove each other from two processes, in 50 rounds', async () => {
    for (let round = 0; round < 50; round++) {
      world = memoryWorld();
      one = world.process();
      two = world.process();
      const [ann, bob] = [await make(), await make()];
      // Another order of the appends in each round.
      world.beforeAppend = () => sleep(Math.random() * 4);
      const acts = [
        (commands: Commands, id: number) => remove(commands, id),
        (commands: Commands, id: number) => update(commands, id, { role: 'viewer' }),
        (commands: Commands, id: number) => update(commands, id, { is_approved: false }),
        (commands: Commands, id: number) => move(commands, id, 2),
      ];
      const act = () => acts[Math.floor(Math.random() * acts.length)] as (typeof acts)[number];
      const outcomes = await Promise.all([act()(one, bob), act()(two, ann)]);
      expect(outcomes.sort(), `round ${round}`).to.deep.equal(['LAST_ADMIN', 'done']);
      expect(await adminsLeft(), `round ${round}`).to.equal(1);
    }
  });

  it('is kept when many admins remove many at once', async () => {
    const ids = await Promise.all(Array.from({ length: 6 }, () => make()));
    world.beforeAppend = () => sleep(Math.random() * 2);
    const outcomes = await Promise.all(ids.map((id, n) => remove(n % 2 ? one : two, id)));
    expect(outcomes.filter((one) => one === 'done').length).to.equal(ids.length - (await adminsLeft()));
    expect(await adminsLeft()).to.equal(1);
  });

  it('is kept when a request is too late for its turn and must take another one', async () => {
    const [ann, bob] = [await make(), await make()];
    const late = world.holdNext((stream) => stream === userStream(bob));
    const slow = remove(one, bob);
    await late.reached;
    // The turn at bob is open, and does not end: it is voided, and bob is the one who stays.
    expect(await remove(two, ann)).to.equal('done');
    late.open();
    expect(await slow).to.equal('LAST_ADMIN');
    expect(await adminsLeft()).to.equal(1);
    const types = world
      .written()
      .filter(({ stream }) => stream === adminsStream(1) || stream === userStream(bob))
      .map(({ type }) => type);
    expect(types).to.deep.equal(['UserCreated', 'AdminRemovalBegun', 'AdminRemovalVoided', 'AdminRemovalBegun']);
  });
});
