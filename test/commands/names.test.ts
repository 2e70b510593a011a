/** The name space that users and agents share: look-alikes, several processes at once. */
import { expect } from 'chai';
import { agentDecider, agentStream } from '../../commands/agents/agents.ts';
import { deleteAgent, updateAgent } from '../../commands/agents/changes.ts';
import { registerAgent, selfRegistration } from '../../commands/agents/registration.ts';
import { deleteUser, updateUser } from '../../commands/auth/changes.ts';
import { createUser } from '../../commands/auth/registration.ts';
import { userDecider } from '../../commands/auth/users.ts';
import { ABANDONED_AFTER_MS, claimName, releaseName } from '../../commands/claims.ts';
import type { CommandContext, Commands } from '../../commands/handler.ts';
import { userNameClaims } from '../../commands/names.ts';
import { userStream } from '../../shared/events/auth/users.ts';
import { ann } from '../support/ann.ts';
import { memoryCredentials } from '../support/auth-memory.ts';
import { fixtureForEach } from '../support/fixture.ts';
import { anyRoom, outcomeOf } from '../support/kit.ts';
import { leasesMemory } from '../support/leases-memory.ts';
import { memoryWorld } from '../support/memory-world.ts';
import { testOrigin } from '../support/world.ts';

const { store: credentials } = memoryCredentials();
const context = (workspace = 1): CommandContext => ({ origin: { ...testOrigin, workspace } });
const bot = (name: string) => selfRegistration({ name, framework: null, capabilities: [] });
const agentOf = (commands: Commands, name: string, workspace = 1) =>
  registerAgent(commands, context(workspace), bot(name), anyRoom);
const rename = (commands: Commands, id: number, name: string) =>
  outcomeOf(updateAgent(commands, context(), id, { name }, { via: 'id' }));
const userOf = (commands: Commands, username: string, workspace = 1) =>
  createUser(commands, context(workspace), credentials, { ...ann, username, display_name: username, workspace }, null);
const transfer = (commands: Commands, userId: number, workspace: number) =>
  updateUser(commands, context(), credentials, async () => [99], {
    user_id: userId,
    workspace: 'all',
    transfer: { to: { tenant: 1, workspace }, reach: 'all' },
    callerId: 0,
    changes: {},
    password: null,
    by: 'cli',
  });
describe('names of users and agents', () => {
  /** Added to the clock of the log. */
  let shift = 0;
  beforeEach(() => {
    shift = 0;
  });
  const world = fixtureForEach(() => memoryWorld(() => Date.now() + shift));
  const one = fixtureForEach(() => world.process());
  const two = fixtureForEach(() => world.process());
  const count = (type: string) => world.written().filter((event) => event.type === type).length;

  it('share one name space: of 50 requests from two processes for look-alike names, one succeeds', async () => {
    const spellings = ['scout', 'Scout', 'sc0ut', 'SCOUT'];
    const asked = Array.from({ length: 50 }, (_, n) => {
      const [commands, name] = [n % 2 ? one : two, spellings[n % 4] as string];
      return outcomeOf(n % 3 ? agentOf(commands, name) : userOf(commands, name));
    });
    const outcomes = await Promise.all(asked);
    expect(outcomes.filter((outcome) => outcome === 'done')).to.have.length(1);
    expect(new Set(outcomes)).to.deep.equal(new Set(['done', 'NAME_TAKEN']));
    expect(count('UserCreated') + count('AgentRegistered')).to.equal(1);
  });

  it('of a user are refused to agents of the workspace, and vice versa', async () => {
    await userOf(one, 'ann');
    const { id } = await agentOf(one, 'scout');
    for (const name of ['ann', 'Ann', 'ANN']) {
      expect(await outcomeOf(agentOf(two, name)), name).to.equal('NAME_TAKEN');
      expect(await rename(two, id, name), name).to.equal('NAME_TAKEN');
    }
    for (const name of ['scout', 'Scout', 'sc0ut'])
      expect(await outcomeOf(userOf(two, name)), name).to.equal('NAME_TAKEN');
    expect((await two.load(agentDecider, agentStream(1, id))).state.name).to.equal('scout');
  });

  it('of agents are unique within a workspace, of users across workspaces', async () => {
    await userOf(one, 'ann', 1);
    await agentOf(one, 'scout', 1);
    expect(await outcomeOf(agentOf(one, 'ann', 2))).to.equal('done');
    expect(await outcomeOf(agentOf(one, 'scout', 2))).to.equal('done');
    expect(await outcomeOf(userOf(one, 'scout', 3))).to.equal('done');
    expect(await outcomeOf(userOf(one, 'Ann', 3))).to.equal('NAME_TAKEN');
  });

  it('are free again if their owner is deleted or a user was rejected', async () => {
    const { id } = await agentOf(one, 'scout');
    const userId = await userOf(one, 'ann');
    await deleteAgent({ commands: one, leases: leasesMemory() }, context(), id, false);
    await deleteUser(one, context(), credentials, async () => [99], { user_id: userId, reach: 'all', callerId: 0 });
    expect(await outcomeOf(userOf(two, 'Scout'))).to.equal('done');
    expect(await outcomeOf(agentOf(two, 'ANN'))).to.equal('done');
    // It had the name among all users before it met the agent of that name in its workspace.
    expect(await outcomeOf(userOf(two, 'ann'))).to.equal('NAME_TAKEN');
    expect(await outcomeOf(userOf(two, 'ann', 2))).to.equal('done');
  });

  it('may change their spelling, except to an invalid name', async () => {
    const { id } = await agentOf(one, 'modem');
    for (const name of ['Modem', 'modern', 'MODEM']) {
      expect(await rename(one, id, name), name).to.equal('done');
      expect(await outcomeOf(agentOf(two, 'modem'))).to.equal('NAME_TAKEN');
    }
    expect(await rename(one, id, 'mo\u200bdem')).to.equal('400');
  });

  it('are stored in NFC', async () => {
    const { id } = await agentOf(one, 'Jose\u0301');
    const nameOf = async () => (await one.load(agentDecider, agentStream(1, id))).state.name;
    expect(await nameOf()).to.equal('José');
    expect(await outcomeOf(agentOf(two, 'José'))).to.equal('NAME_TAKEN');
    await rename(one, id, 'Rene\u0301');
    expect(await nameOf()).to.equal('René');
  });

  it('are free again after a claim is given up', async () => {
    const claims = userNameClaims(1, 'ann');
    for (const { kind, scope, name, shown } of claims)
      await claimName(one, context(), kind, scope, name, userStream(99), shown);
    expect(await outcomeOf(agentOf(two, 'ann'))).to.equal('BUSY');
    for (const { kind, scope, name } of claims) await releaseName(one, context(), kind, scope, name, userStream(99));
    expect(await outcomeOf(agentOf(two, 'ann'))).to.equal('done');
  });

  describe('in another workspace', () => {
    const clock = Date.now;
    afterEach(() => {
      Date.now = clock;
    });
    const later = () => {
      Date.now = () => clock() + ABANDONED_AFTER_MS + 1_000;
    };

    it('a user cannot move to where an agent has the name', async () => {
      const userId = await userOf(one, 'ann');
      await agentOf(one, 'Ann', 2);
      expect(await outcomeOf(transfer(two, userId, 2))).to.equal('NAME_TAKEN');
      expect(await outcomeOf(transfer(two, userId, 3))).to.equal('done');
      expect(await outcomeOf(agentOf(two, 'ANN', 3))).to.equal('NAME_TAKEN');
    });

    it('an agent can take the name where a user has left', async () => {
      const userId = await userOf(one, 'ann');
      await transfer(one, userId, 2);
      later();
      expect(await outcomeOf(agentOf(two, 'ann', 1))).to.equal('done');
      expect(await outcomeOf(transfer(two, userId, 1))).to.equal('NAME_TAKEN');
      const { state } = await two.load(userDecider, userStream(userId));
      expect(state).to.include({ exists: true, workspace: 2, voided: false });
    });

    it('a user cannot move there while an agent that voided the claim takes the name', async () => {
      const userId = await userOf(one, 'ann');
      const [{ kind, scope, name } = expect.fail()] = userNameClaims(2, 'ann');
      await claimName(one, context(), kind, scope, name, userStream(userId));
      later();
      const held = world.holdNext((stream) => stream === 'name-2-ann' && count('NameClaimVoided') > 0);
      const agent = outcomeOf(agentOf(two, 'ann', 2));
      await held.reached;
      expect(count('NameClaimVoided')).to.equal(1);
      expect(await outcomeOf(transfer(one, userId, 2))).to.equal('BUSY');
      held.open();
      expect(await agent).to.equal('done');
      expect(await outcomeOf(transfer(one, userId, 2))).to.equal('NAME_TAKEN');
      expect((await two.load(userDecider, userStream(userId))).state.workspace).to.equal(1);
    });

    it('a transfer is rejected if it is so late that an agent has taken over the name', async () => {
      const userId = await userOf(one, 'ann');
      const held = world.holdNext((stream, type) => stream === userStream(userId) && type === 'UserTransferred');
      const slow = outcomeOf(transfer(one, userId, 2));
      await held.reached;
      later();
      const taken = await outcomeOf(agentOf(two, 'ann', 2));
      Date.now = clock;
      held.open();
      expect([await slow, taken]).to.deep.equal(['BUSY', 'done']);
      expect((await two.load(userDecider, userStream(userId))).state.workspace).to.equal(1);
    });
  });
});
