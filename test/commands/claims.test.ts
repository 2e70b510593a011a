/** Unique names, with several processes at work at once. */
import { expect } from 'chai';
import { createUser } from '../../commands/auth/registration.ts';
import { NAME_LOST, type UserState, userDecider } from '../../commands/auth/users.ts';
import { ABANDONED_AFTER_MS, claimName, type NameKind, nameDecider, releaseName } from '../../commands/claims.ts';
import type { Commands } from '../../commands/handler.ts';
import { userNameClaims } from '../../commands/names.ts';
import { userStream } from '../../shared/events/auth/users.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import { newUser } from '../support/ann.ts';
import { outcomeOf } from '../support/kit.ts';
import { gate, memoryWorld } from '../support/memory-world.ts';
import { testOrigin } from '../support/world.ts';

const context = () => ({ origin: testOrigin });
const noCredentials = {} as Credentials;
const person = newUser('ann', { display_name: null });

describe('unique names', () => {
  it('go to one of several requests that take over an abandoned claim, and never to the first owner', async () => {
    let now = Date.now() - ABANDONED_AFTER_MS - 1_000;
    const world = memoryWorld(() => now);
    const first = world.process();
    const firstId = await first.counters.take('user');
    const [{ kind, name } = expect.fail()] = userNameClaims('all', 'ann');
    await claimName(first, context(), kind, 'all', name, userStream(firstId));
    now = Date.now();
    // Both have seen the abandoned claim and voided it before either claims the name.
    const both = gate();
    let waiting = 0;
    world.beforeAppend = async (stream, [event]) => {
      if (event?.type !== 'NameClaimed' || stream !== 'name-all-ann') return;
      if (++waiting === 2) both.open();
      await both.wait();
    };
    const outcomes = await Promise.all(
      [world.process(), world.process()].map((commands) =>
        outcomeOf(createUser(commands, context(), noCredentials, person, null)),
      ),
    );
    expect(outcomes.sort()).to.deep.equal(['NAME_TAKEN', 'done']);
    const users = world.written().filter(({ type }) => type === 'UserCreated');
    expect(users.map(({ data }) => data.username)).to.deep.equal(['ann']);
    // The first owner was merely slow.
    const late = createUser(first, context(), noCredentials, person, null, { id: firstId });
    expect(await outcomeOf(late)).to.be.oneOf(['NAME_TAKEN', NAME_LOST]);
    expect((await first.load(userDecider, userStream(firstId))).state.exists).to.equal(false);
  });

  it('are not taken over if the claim is fresh or its owner has the name', async () => {
    const world = memoryWorld();
    const [one, two] = [world.process(), world.process()];
    const [{ kind, name } = expect.fail()] = userNameClaims('all', 'ann');
    await claimName(one, context(), kind, 'all', name, userStream(99));
    expect(await outcomeOf(createUser(two, context(), noCredentials, person, null))).to.equal('BUSY');
    await createUser(one, context(), noCredentials, person, null, { id: 99 });
    expect(await outcomeOf(createUser(two, context(), noCredentials, person, null))).to.equal('NAME_TAKEN');
    expect(world.written().filter(({ type }) => type === 'NameClaimVoided')).to.deep.equal([]);
  });
});

describe('a claim by another owner', () => {
  const mine = 'user-1-1';
  const theirs = 'user-1-2';
  let now: number;
  let world: ReturnType<typeof memoryWorld>;
  let commands: Commands;
  type Held = ReturnType<NameKind<UserState>['holds']>;
  let answers: Held[];
  /** Asked in turn whether the owner has the name; the last answer stays. */
  const kind: NameKind<UserState> = {
    kind: 'username',
    owner: userDecider,
    holds: () => (answers.length > 1 ? answers.shift() : answers[0]) as Held,
    taken: (name) => `${name} is taken`,
  };
  const claim = (owner: string) => outcomeOf(claimName(commands, context(), kind, 'all', 'ann', owner));
  const release = (owner: string) => releaseName(commands, context(), kind, 'all', 'ann', owner);
  const named = async () => (await world.process().load(nameDecider, 'username-all-ann')).state;
  const voided = () => world.written().filter(({ type }) => type === 'NameClaimVoided');
  const clock = Date.now;

  beforeEach(async () => {
    now = clock();
    Date.now = () => now;
    world = memoryWorld(() => now);
    commands = world.process();
    expect(await claim(theirs)).to.equal('done');
    expect(await named()).to.deep.equal({ owner: theirs, claimedAt: now });
  });
  afterEach(() => {
    Date.now = clock;
  });

  it('is void at once if the owner can never have the name', async () => {
    answers = ['never'];
    expect(await claim(mine)).to.equal('done');
    expect((await named()).owner).to.equal(mine);
    expect(voided()).to.deep.equal([]);
  });

  it('is voided in its owner’s stream once it has expired, if the owner does not have the name', async () => {
    answers = ['not yet'];
    now += ABANDONED_AFTER_MS - 1;
    expect(await claim(mine)).to.equal('BUSY');
    now += 1;
    expect(await claim(mine)).to.equal('done');
    expect((await named()).owner).to.equal(mine);
    expect(voided().map(({ stream, data }) => [stream, data])).to.deep.equal([
      [theirs, { kind: 'username', name: 'ann' }],
    ]);
  });

  it('stays valid at any age if the owner has the name, even from the last moment', async () => {
    now += ABANDONED_AFTER_MS * 2;
    for (const told of [['yes'], ['not yet', 'yes']] as const) {
      answers = [...told];
      expect(await claim(mine)).to.equal('NAME_TAKEN');
      expect((await named()).owner).to.equal(theirs);
    }
    expect(voided()).to.deep.equal([]);
  });

  const claimAsking = (asked: (nth: number) => Held) => {
    let nth = 0;
    const asking = { ...kind, holds: () => asked(++nth) };
    return outcomeOf(claimName(commands, context(), asking, 'all', 'ann', mine));
  };

  it('is waited for while the owner may still get the name, and then taken', async () => {
    expect(await claimAsking((nth) => (nth < 4 ? 'not yet' : 'yes'))).to.equal('NAME_TAKEN');
  });

  it('is waited for, and is free if the owner releases the name meanwhile', async () => {
    let released: Promise<void> | undefined;
    const outcome = claimAsking((nth) => {
      if (nth === 3) released = release(theirs);
      return 'not yet';
    });
    expect(await outcome).to.equal('done');
    await released;
    expect((await named()).owner).to.equal(mine);
    expect(voided()).to.deep.equal([]);
  });

  it('is waited for at most one second', async () => {
    const started = performance.now();
    let looks = 0;
    const outcome = claimAsking((nth) => {
      looks = nth;
      return 'not yet';
    });
    expect(await outcome).to.equal('BUSY');
    expect(performance.now() - started).to.be.above(900);
    expect(looks).to.equal(8);
    expect((await named()).owner).to.equal(theirs);
  });

  it('does not matter if the owner gives up the name meanwhile', async () => {
    answers = ['not yet'];
    now += ABANDONED_AFTER_MS;
    world.beforeAppend = async (_stream, [event]) => {
      if (event?.type !== 'NameClaimVoided') return;
      world.beforeAppend = async () => undefined;
      await release(theirs);
    };
    expect(await claim(mine)).to.equal('done');
    expect((await named()).owner).to.equal(mine);
  });

  it('ends when its owner releases the name; no one else can release it', async () => {
    await release(mine);
    expect((await named()).owner).to.equal(theirs);
    expect(world.written()).to.have.length(1);
    await release(theirs);
    expect(await named()).to.deep.equal({ owner: undefined, claimedAt: 0 });
    expect(world.written().at(-1)?.data).to.deep.equal({ kind: 'username', name: 'ann', owner: theirs });
  });
});
