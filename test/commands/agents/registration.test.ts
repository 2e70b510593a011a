/** How agents come to be: by an operator, by themselves, by an import. */
import { expect } from 'chai';
import { agentStream } from '../../../commands/agents/agents.ts';
import {
  createAgent,
  decideRegister,
  decideReturn,
  operatorsRegistration,
  type RegisteredAgent,
  type Registering,
  registerSelf,
  selfRegistration,
} from '../../../commands/agents/registration.ts';
import { NOTHING_STORED, syncAgents } from '../../../commands/agents/sync.ts';
import { agentReturned } from '../../../shared/events/agents/registration.ts';
import { MASK } from '../../../shared/secrets.ts';
import { ada, given, registered, registration } from '../../support/agent.ts';
import { agentsMemory } from '../../support/agents-memory.ts';
import { anyRoom, failureOf, outcomeOf, refusalFrom, refusalOf } from '../../support/kit.ts';
import { repeatedRequest } from '../../support/memory-world.ts';

const NOW = 1_700_000_000_900;

/** A caller for whom this agent, if any, has the name, and who may register as any. */
const registering = (known?: RegisteredAgent): Registering => ({
  find: async () => known,
  only: undefined,
  room: anyRoom,
  now: () => 0,
});

describe('an operator’s new agent', () => {
  it('is offline and has no optional fields by default', () => {
    const none = { session_key: null, soul_content: null, config: {}, template: null, runtime_type: null };
    const fixed = { source: 'manual', via: 'operator', framework: null, capabilities: [] };
    expect(operatorsRegistration({ name: 'ada', role: 'coder', session_key: '' })).to.deep.equal({
      name: 'ada',
      role: 'coder',
      status: 'offline',
      ...none,
      ...fixed,
    });
    const given = operatorsRegistration({
      name: 'ada',
      role: 'coder',
      status: 'busy',
      session_key: 'key-1',
      soul_content: 'calm',
      config: { a: 1 },
      gateway_config: { b: 2 },
      runtime_type: 'codex',
    });
    expect(given).to.deep.include({
      status: 'busy',
      session_key: 'key-1',
      soul_content: 'calm',
      config: { a: 1, b: 2 },
      runtime_type: 'codex',
    });
  });

  it('cannot contain masks, because there are no secrets to restore', () => {
    for (const more of [{ config: { token: MASK } }, { gateway_config: { token: MASK } }]) {
      const { status, message } = refusalOf(() => operatorsRegistration({ name: 'ada', role: 'coder', ...more }));
      expect([status, message.includes(Object.keys(more)[0] as string)]).to.deep.equal([400, true]);
    }
  });

  const create = async (document: boolean, writeToGateway: boolean) => {
    const agents = agentsMemory();
    if (document) await agents.store({ agents: { list: [] } });
    const input = { name: 'ada', role: 'coder', config: { model: 'm' } };
    const created = () =>
      createAgent(agents.commands, agents.context(), anyRoom, input, { write_to_gateway: writeToGateway });
    return { agents, created };
  };

  it('is written to the gateway document on request', async () => {
    const { agents, created } = await create(true, true);
    const { id, warning } = await created();
    expect(warning).to.equal(undefined);
    expect(await agents.stateOf(id)).to.include({ name: 'ada', role: 'coder' });
    expect(await agents.entries()).to.have.length(1);
    expect(agents.events('GatewayConfigChanged').at(-1)?.data).to.include({
      cause: 'agent-created',
      agent_name: 'ada',
    });
  });

  it('is not written otherwise', async () => {
    const { agents, created } = await create(true, false);
    expect((await created()).warning).to.equal(undefined);
    expect(await agents.entries()).to.deep.equal([]);
  });

  it('exists even if the gateway document could not be written, with a warning', async () => {
    const { agents, created } = await create(false, true);
    const { id, warning } = await created();
    expect(warning).to.match(/^The agent was created, but not written to the gateway configuration\. No gateway/);
    expect((await agents.stateOf(id)).registered).to.equal(true);
  });

  it('fails with the error of the log if the outcome of the append is unknown', async () => {
    const { agents, created } = await create(true, true);
    agents.breakStreams('gateway_config');
    expect(await failureOf(created())).to.match(/the disk is full/);
  });

  it('frees its names only if its registration was definitely rejected', async () => {
    const { agents, created } = await create(false, false);
    agents.breakStreams(agentStream(1, 1));
    expect(await failureOf(created())).to.match(/the disk is full/);
    expect(agents.events('NameReleased')).to.deep.equal([]);
  });

  it('must have a valid agent name', async () => {
    const { agents } = await create(false, false);
    const input = { name: 'a\nb', role: 'coder' };
    const refused = createAgent(agents.commands, agents.context(), anyRoom, input, { write_to_gateway: false });
    expect(await failureOf(refused)).to.match(/^name: /);
    expect(agents.world.written()).to.deep.equal([]);
  });
});

describe('self-registration of an agent', () => {
  it('stores its capabilities and framework in the config', () => {
    const bare = selfRegistration({ name: 'ada', framework: null, capabilities: [] });
    expect(bare).to.deep.equal({
      name: 'ada',
      role: 'agent',
      status: 'idle',
      session_key: null,
      soul_content: null,
      config: {},
      template: null,
      runtime_type: null,
      source: 'manual',
      via: 'self',
      framework: null,
      capabilities: [],
    });
    const given = selfRegistration({ name: 'ada', role: 'coder', framework: 'crewai', capabilities: ['code'] });
    expect(given).to.deep.include({
      role: 'coder',
      config: { capabilities: ['code'], framework: 'crewai' },
      framework: 'crewai',
      capabilities: ['code'],
    });
  });

  it('creates an agent under a new name, and records a return under a known one', async () => {
    const agents = agentsMemory(() => NOW);
    const input = { name: 'ada', framework: null, capabilities: [] };
    const register = (known?: RegisteredAgent) =>
      registerSelf(agents.commands, agents.context(), input, registering(known));
    const { agent, registered } = await register();
    expect(agent).to.deep.equal({ id: 1, name: 'ada', role: 'agent', created_at: 1_700_000_000 });
    expect(registered).to.equal(true);
    expect(await register(agent)).to.deep.equal({ agent, registered: false });
    expect(agents.events('AgentRegistered')).to.have.length(1);
    expect(agents.events('AgentReturned').map(({ stream }) => stream)).to.deep.equal([agentStream(1, 1)]);
    expect(await outcomeOf(register()), 'the read model is behind').to.equal('NAME_TAKEN');
  });

  it('succeeds for all concurrent requests under one name, with one agent', async () => {
    const agents = agentsMemory(() => NOW);
    const input = { name: 'ada', framework: null, capabilities: [] };
    // The read model shows an agent a moment after its name is taken.
    const found: RegisteredAgent[] = [];
    const requests = [1, 2, 3, 4].map(async () => {
      const from = { ...registering(), find: async () => found[0] };
      const answer = await registerSelf(agents.world.process(), agents.context(), input, from);
      if (answer.registered) found.push(answer.agent);
      return answer;
    });
    const answers = await Promise.all(requests);
    expect(answers.map(({ registered: isNew }) => isNew).sort()).to.deep.equal([false, false, false, true]);
    expect(new Set(answers.map(({ agent }) => agent.id)).size).to.equal(1);
    expect(agents.events('AgentReturned')).to.have.length(3);
  });

  it('is rejected at once if the caller may not register under the name', async () => {
    const agents = agentsMemory(() => NOW);
    const input = { name: 'ada', framework: null, capabilities: [] };
    const { agent } = await registerSelf(agents.commands, agents.context(), input, registering());
    const as = { ...registering(agent), only: agent.id + 1 };
    const { status, message } = await refusalFrom(registerSelf(agents.commands, agents.context(), input, as));
    expect(status).to.equal(409);
    expect(message).to.include('another agent').and.include('another name');
    expect(agents.events('AgentReturned')).to.deep.equal([]);
  });

  it('is rejected at the first attempt under a name that a user is shown by', async () => {
    const agents = agentsMemory(() => NOW);
    const commands = { ...agents.commands, displayed: async () => [7] };
    let looked = 0;
    const find = async () => {
      looked++;
      return undefined;
    };
    const input = { name: 'ada', framework: null, capabilities: [] };
    const refused = registerSelf(commands, agents.context(), input, { ...registering(), find });
    expect((await refusalFrom(refused)).message).to.match(/^A user is shown as "ada"/);
    // Before the attempt, and for the name's owner after it.
    expect(looked).to.equal(2);
  });

  it('returns the agent of the first run as new if the request is repeated', async () => {
    const agents = agentsMemory();
    const once = repeatedRequest();
    const input = { name: 'ada', framework: null, capabilities: [] };
    const run = (known?: RegisteredAgent) => registerSelf(agents.commands, once(), input, registering(known));
    const first = await run();
    expect(await run(first.agent)).to.deep.equal(first);
    expect(agents.events('AgentReturned')).to.deep.equal([]);
  });
});

describe('an import of agents', () => {
  it('creates missing agents, updates different ones, and reports the outcome for each', async () => {
    const agents = agentsMemory();
    const ids = new Map([
      ['ada', await agents.make('ada', { role: 'coder', config: { model: 'm', own: 1 } })],
      ['bob', await agents.make('bob', { role: 'agent', config: { model: 'm' } })],
      ['cyn', await agents.make('cyn', { role: 'agent', config: { model: 'm' } })],
    ]);
    const asked: (readonly string[])[] = [];
    const sync = () =>
      syncAgents(agents.commands, agents.context(), anyRoom, async (names) => {
        asked.push(names);
        return ids;
      });
    expect(await sync()).to.deep.equal({ synced: 0, created: 0, updated: 0, agents: [], message: NOTHING_STORED });
    await agents.store({
      agents: {
        list: [
          { id: 'ada', model: 'n', identity: { theme: 'coder' } },
          { id: 'bob', model: 'm' },
          { id: 'cyn', model: 'm', identity: { theme: 'lead' } },
          { id: 'e-1', name: 'eve', model: 'm' },
        ],
      },
    });
    expect(await sync()).to.deep.equal({
      synced: 4,
      created: 1,
      updated: 2,
      agents: [
        { id: 'ada', name: 'ada', action: 'updated' },
        { id: 'bob', name: 'bob', action: 'unchanged' },
        { id: 'cyn', name: 'cyn', action: 'updated' },
        { id: 'e-1', name: 'eve', action: 'created' },
      ],
    });
    expect(asked).to.deep.equal([['ada', 'bob', 'cyn', 'eve']]);
    expect(await agents.configOf(1)).to.deep.equal({ model: 'n', own: 1, identity: { theme: 'coder' } });
    expect(await agents.stateOf(3)).to.include({ role: 'lead' });
    const eve = agents.events('AgentRegistered').at(-1);
    expect(eve?.data).to.deep.include({ name: 'eve', status: 'offline', source: 'gateway', via: 'sync' });
    expect(await agents.configOf(4)).to.deep.equal({ model: 'm' });
    const [synced] = agents.events('AgentsSynced');
    expect(synced).to.deep.include({
      stream: 'agent_sync-1',
      data: { synced: 4, created: 1, updated: 2, agents: ['ada', 'cyn', 'eve'] },
    });
    ids.set('eve', 4);
    expect(await sync()).to.deep.include({ created: 0, updated: 0 });
    expect(agents.events('AgentsSynced'), 'nothing was done').to.have.length(1);
  });
});

describe('agent: registration', () => {
  it('creates an agent once', () => {
    given().when(decideRegister, 7, registration).then(registered);
    given(registered).when(decideRegister, 7, registration).thenRefuses(409);
  });

  it('of a known agent is recorded as a return', () => {
    given(registered).when(decideReturn).then(agentReturned.draft(ada));
  });
});
