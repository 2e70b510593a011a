/**
 * Unique names of agents between the appends of a command: claims, renames at once, releases that come late, requests
 * that die half-way and are repeated.
 */
import { expect } from 'chai';
import { type AgentUpdate, agentDecider, agentStream } from '../../../commands/agents/agents.ts';
import { deleteAgent, updateAgent, updateFromConfig } from '../../../commands/agents/changes.ts';
import { registerAgent, selfRegistration } from '../../../commands/agents/registration.ts';
import { ABANDONED_AFTER_MS, nameDecider } from '../../../commands/claims.ts';
import type { CommandContext, Commands } from '../../../commands/handler.ts';
import { type AppError, invalid, LogUnavailableError } from '../../../shared/errors.ts';
import { nameKeys } from '../../../shared/names.ts';
import { fixtureForEach } from '../../support/fixture.ts';
import { anyRoom } from '../../support/kit.ts';
import { leasesMemory } from '../../support/leases-memory.ts';
import { type MemoryWorld, memoryWorld, repeatedRequest } from '../../support/memory-world.ts';
import { testOrigin } from '../../support/world.ts';

const context = (): CommandContext => ({ origin: testOrigin });
const bot = (name: string, sessionKey: string | null = null) => ({
  ...selfRegistration({ name, framework: null, capabilities: [] }),
  session_key: sessionKey,
});

const register = async (commands: Commands, name: string, sessionKey?: string) =>
  (await registerAgent(commands, context(), bot(name, sessionKey), anyRoom)).id;
const rename = (commands: Commands, id: number, name: string) =>
  updateAgent(commands, context(), id, { name }, { via: 'id' });
const update = (commands: Commands, id: number, fields: object) =>
  updateAgent(commands, context(), id, fields, { via: 'id' });

const statusOf = (work: Promise<unknown>): Promise<number> =>
  work.then(
    () => 200,
    (error: AppError) => error.status,
  );

async function nameOf(world: MemoryWorld, id: number): Promise<string> {
  return (await world.process().load(agentDecider, agentStream(1, id))).state.name;
}

/** Who has claimed a name; undefined when it is free. */
async function ownerOf(world: MemoryWorld, name: string, kind = 'name-1'): Promise<string | undefined> {
  return (await world.process().load(nameDecider, `${kind}-${nameKeys(name)[0]}`)).state.owner;
}

describe('agent names', () => {
  /** Added to the clock of the log: claims seem older. */
  let shift = 0;
  beforeEach(() => {
    shift = 0;
  });
  const world = fixtureForEach(() => memoryWorld(() => Date.now() + shift));
  const one = fixtureForEach(() => world.process());
  const two = fixtureForEach(() => world.process());

  it('are free again if the session key is already taken', async () => {
    await register(one, 'ada', 'key');
    expect(await statusOf(register(one, 'eve', 'key'))).to.equal(409);
    expect(await ownerOf(world, 'eve')).to.equal(undefined);
    expect(await statusOf(register(two, 'eve'))).to.equal(200);
  });

  it('are free after a rename or deletion, as are session keys', async () => {
    const id = await register(one, 'ada', 'key');
    await update(one, id, { name: 'eve', session_key: 'other' });
    expect(await statusOf(register(two, 'ada', 'key'))).to.equal(200);
    expect(await statusOf(register(two, 'eve'))).to.equal(409);
    expect(await statusOf(register(two, 'x', 'other'))).to.equal(409);
    await deleteAgent({ commands: one, leases: leasesMemory() }, context(), id, false);
    expect(await statusOf(register(two, 'eve', 'other'))).to.equal(200);
  });

  it('can be taken back at once', async () => {
    const id = await register(one, 'ada');
    for (const name of ['eve', 'ada', 'eve', 'ada']) {
      await rename(one, id, name);
      expect(await nameOf(world, id)).to.equal(name);
      expect(await ownerOf(world, name)).to.equal(agentStream(1, id));
      expect(await ownerOf(world, name === 'ada' ? 'eve' : 'ada')).to.equal(undefined);
    }
  });

  it('go to one of several agents that want the same name', async () => {
    const ids: number[] = [];
    for (let n = 0; n < 10; n++) ids.push(await register(one, `agent-${n}`));
    const asked = await Promise.all(ids.map((id, n) => statusOf(rename(n % 2 ? one : two, id, 'wanted'))));
    expect(asked.filter((status) => status === 200)).to.have.length(1);
    const names = await Promise.all(ids.map((id) => nameOf(world, id)));
    expect(names.filter((name) => name === 'wanted')).to.have.length(1);
    // The losers keep theirs.
    for (const [n, id] of ids.entries()) {
      if (names[n] !== 'wanted') expect(await ownerOf(world, `agent-${n}`)).to.equal(agentStream(1, id));
    }
  });

  it('stay with one agent while many requests rename it back and forth', async () => {
    const id = await register(one, 'ada');
    for (let round = 0; round < 5; round++) {
      await Promise.all(
        Array.from({ length: 8 }, (_, n) => statusOf(rename(n % 2 ? one : two, id, n % 3 ? 'ada' : 'eve'))),
      );
      const name = await nameOf(world, id);
      expect(await ownerOf(world, name)).to.equal(agentStream(1, id));
      expect(await statusOf(register(two, name))).to.equal(409);
    }
  });

  it('are not released by a late request once the agent has taken its old name back', async () => {
    const id = await register(one, 'ada');
    const held = world.holdNext((stream, type) => stream === 'name-1-ada' && type === 'NameReleased');
    const first = rename(one, id, 'eve');
    await held.reached;
    expect(await statusOf(rename(two, id, 'ada'))).to.equal(409);
    held.open();
    await first;
    await rename(two, id, 'ada');
    expect(await ownerOf(world, 'ada')).to.equal(agentStream(1, id));
  });

  it('released after a rejection make other requests on the same claim fail', async () => {
    const id = await register(one, 'ada');
    await register(one, 'other', 'taken');
    const held = world.holdNext((stream, type) => stream === agentStream(1, id) && type === 'AgentDetailsChanged');
    // Claims `eve` and waits before its append; the other one claims `eve` too, fails on the key and gives up.
    const slow = statusOf(rename(one, id, 'eve'));
    await held.reached;
    expect(await statusOf(update(two, id, { name: 'eve', session_key: 'taken' }))).to.equal(409);
    held.open();
    expect(await slow).to.equal(409);
    expect(await nameOf(world, id)).to.equal('ada');
    expect(await ownerOf(world, 'eve')).to.equal(undefined);
    await rename(one, id, 'eve');
    expect(await ownerOf(world, 'eve')).to.equal(agentStream(1, id));
  });

  it('claimed by a crashed process are taken over after a while, and its own append then fails', async () => {
    shift = -ABANDONED_AFTER_MS - 1_000;
    const held = world.holdNext((_, type) => type === 'AgentRegistered');
    const slow = statusOf(register(one, 'ada'));
    await held.reached;
    shift = 0;
    expect(await statusOf(register(two, 'ada'))).to.equal(200);
    held.open();
    expect(await slow).to.equal(409);
    expect(world.written().filter(({ type }) => type === 'AgentRegistered')).to.have.length(1);
  });

  it('stay claimed if it is unknown whether the agent was stored', async () => {
    world.beforeAppend = async (_stream, events) => {
      if (events[0]?.type === 'AgentRegistered') throw new LogUnavailableError('away');
    };
    expect(await statusOf(register(one, 'ada'))).to.equal(503);
    world.beforeAppend = async () => undefined;
    expect(await statusOf(register(two, 'ada'))).to.equal(409);
  });

  it('stay with the same agent if a request is repeated after a crash between claim and registration', async () => {
    const repeatable = repeatedRequest();
    world.beforeAppend = async (_stream, events) => {
      if (events[0]?.type === 'AgentRegistered') throw new LogUnavailableError('away');
    };
    expect(await statusOf(registerAgent(one, repeatable(), bot('ada', 'key'), anyRoom))).to.equal(503);
    world.beforeAppend = async () => undefined;
    const again = await registerAgent(two, repeatable(), bot('ada', 'key'), anyRoom);
    const third = await registerAgent(world.process(), repeatable(), bot('ada', 'key'), anyRoom);
    expect(third.id).to.equal(again.id);
    expect(third.executed.events.map((event) => event.id)).to.deep.equal(
      again.executed.events.map((event) => event.id),
    );
    expect(world.written().filter(({ type }) => type === 'AgentRegistered')).to.have.length(1);
    expect(await ownerOf(world, 'key', 'session_key-all')).to.equal(agentStream(1, again.id));
  });

  it('are unique within a workspace, and session keys across workspaces', async () => {
    await register(one, 'ada', 'key');
    const elsewhere: CommandContext = { origin: { ...testOrigin, workspace: 2 } };
    expect(await statusOf(registerAgent(one, { ...elsewhere }, bot('ada', 'key'), anyRoom))).to.equal(409);
    expect(await statusOf(registerAgent(one, { ...elsewhere }, bot('ada'), anyRoom))).to.equal(200);
  });
});

describe('agent config', () => {
  it('is merged with its current value, even under concurrent changes', async () => {
    const world = memoryWorld();
    const commands = world.process();
    const other = world.process();
    const id = await register(commands, 'ada');
    const set = (by: Commands, key: string) =>
      updateFromConfig(by, context(), id, { via: 'id' }, (config) => ({ config: { ...config, [key]: true } }));
    const keys = ['a', 'b', 'c', 'd'];
    const statuses = await Promise.all(keys.map((key, n) => statusOf(set(n % 2 ? commands : other, key))));
    const last = world.written().findLast(({ type }) => type === 'AgentDetailsChanged');
    const succeeded = keys.filter((_, n) => statuses[n] === 200);
    expect(last).to.have.nested.property('data.changes.config').that.has.all.keys(succeeded);
  });

  it('is read once for many updates, and again after a change by another process', async () => {
    const world = memoryWorld();
    const commands = world.process();
    const other = world.process();
    const id = await register(commands, 'ada');
    const update = (by: Commands, change: (config: object) => AgentUpdate) =>
      updateFromConfig(by, context(), id, { via: 'id' }, change);
    const set = (by: Commands, key: string) => update(by, (config) => ({ config: { ...config, [key]: true } }));
    await set(commands, 'a');
    world.reads.length = 0;
    await update(commands, () => ({ role: 'x' }));
    await set(commands, 'b');
    await update(commands, () => ({ role: 'y' }));
    expect(world.reads, 'its own changes').to.deep.equal([]);
    await set(other, 'c');
    const seen: object[] = [];
    await update(commands, (config) => {
      seen.push(config);
      return { role: 'z' };
    });
    expect(seen.map((config) => Object.keys(config))).to.deep.equal([
      ['a', 'b'],
      ['a', 'b', 'c'],
    ]);
    const last = world.written().at(-1);
    expect(last?.data).to.deep.include({ config: { a: true, b: true, c: true } });
  });

  it('from the cache does not reject what the current config allows', async () => {
    const world = memoryWorld();
    const commands = world.process();
    const id = await register(commands, 'ada');
    await updateFromConfig(commands, context(), id, { via: 'id' }, () => ({ role: 'x' }));
    await updateFromConfig(world.process(), context(), id, { via: 'id' }, () => ({ config: { there: true } }));
    await updateFromConfig(commands, context(), id, { via: 'id' }, (config) => {
      if (!('there' in config)) throw invalid('there is no such secret');
      return { role: 'y' };
    });
    expect(world.written().at(-1)?.data).to.deep.include({ config: { there: true }, changes: { role: 'y' } });
  });

  it('is not cached if the append fails', async () => {
    const world = memoryWorld();
    const commands = world.process();
    const id = await register(commands, 'ada');
    const set = (key: string) =>
      updateFromConfig(commands, context(), id, { via: 'id' }, (config) => ({ config: { ...config, [key]: true } }));
    await set('a');
    world.beforeAppend = async () => {
      throw new LogUnavailableError('away');
    };
    expect(await statusOf(set('b'))).to.equal(503);
    world.beforeAppend = async () => undefined;
    await set('c');
    expect(world.written().at(-1)).to.have.nested.property('data.changes.config').that.has.all.keys('a', 'c');
  });
});
