/** Updates and deletions of agents, and what becomes of their entries in the gateway's document. */
import { expect } from 'chai';
import { agentStream } from '../../../commands/agents/agents.ts';
import { deleteAgent, type OperatorsUpdate, updateById, updateByName } from '../../../commands/agents/changes.ts';
import { agentDetailsChanged } from '../../../shared/events/agents/agents.ts';
import { MASK } from '../../../shared/secrets.ts';
import { agentsMemory } from '../../support/agents-memory.ts';
import { failureOf, outcomeOf, sample } from '../../support/kit.ts';
import { leasesMemory } from '../../support/leases-memory.ts';

describe('an agent’s own update', () => {
  const open = async () => {
    const agents = agentsMemory();
    const id = await agents.make('ada', { config: { model: 'm', token: 'secret' } });
    const update = (changes: Parameters<typeof updateByName>[3], name = 'ada') =>
      updateByName(agents.commands, agents.context(), { id, name }, changes);
    return { agents, id, update };
  };

  it('sets the given fields, and a mask keeps the secret that it hides', async () => {
    const { agents, id, update } = await open();
    await update({ role: 'lead', config: { token: MASK, model: 'n' } });
    expect(await agents.stateOf(id)).to.include({ role: 'lead', name: 'ada' });
    expect(await agents.configOf(id)).to.deep.equal({ token: 'secret', model: 'n' });
    await update({ config: { own: 1 } });
    expect(await agents.configOf(id), 'without a mask the config is replaced').to.deep.equal({ own: 1 });
    const [details] = agents.events('AgentDetailsChanged');
    expect(details?.data).to.include({ via: 'name', write_to_gateway: false });
  });

  it('does not find an agent under its previous name', async () => {
    const { update } = await open();
    expect(await outcomeOf(update({ role: 'lead' }, 'eve'))).to.equal('404');
    expect(await outcomeOf(update({ config: { token: MASK } }, 'eve'))).to.equal('404');
  });

  it('is rejected if a mask hides no secret', async () => {
    const { update } = await open();
    expect(await outcomeOf(update({ config: { other: { token: MASK } } }))).to.equal('400');
  });

  it('is retried if the config changes meanwhile, and finally rejected', async () => {
    const { agents, id, update } = await open();
    let changes = 0;
    const meddle = (times: number) => {
      agents.world.beforeAppend = async (stream) => {
        if (stream !== agentStream(1, id) || changes >= times) return;
        changes++;
        const { beforeAppend } = agents.world;
        agents.world.beforeAppend = async () => undefined;
        await agents.world.process().record(stream, agents.context(), [
          sample(agentDetailsChanged, {
            agent_id: id,
            name: 'ada',
            changes: { config: { token: `secret ${changes}` } },
            via: 'id',
          }),
        ]);
        agents.world.beforeAppend = beforeAppend;
      };
    };
    meddle(3);
    await update({ config: { token: MASK, own: 1 } });
    expect(await agents.configOf(id)).to.deep.equal({ token: 'secret 3', own: 1 });
    changes = 0;
    meddle(1_000);
    expect(await outcomeOf(update({ config: { token: MASK } }))).to.equal('BUSY');
    expect(changes, 'tries').to.equal(8);
  });
});

describe('an operator’s update', () => {
  const entry = { id: 'ada', name: 'ada', model: 'm', extra: 1 };
  const open = async (stored = true) => {
    const agents = agentsMemory();
    const id = await agents.make('ada', { config: { model: 'm', token: 'secret' } });
    if (stored) await agents.store({ agents: { list: [entry] } });
    const update = (asked: Partial<OperatorsUpdate>, of = id) =>
      updateById(
        agents.commands,
        agents.context(),
        of,
        { update: {}, fields: [], write_to_gateway: undefined, ...asked },
        async () => stored,
      );
    return { agents, id, update };
  };

  it('sets fields, and merges keys into the config', async () => {
    const { agents, id, update } = await open(false);
    await update({ update: { role: 'lead' } });
    expect(await agents.configOf(id)).to.deep.equal({ model: 'm', token: 'secret' });
    await update({ gatewayConfig: { model: 'n', own: 1 } });
    expect(await agents.configOf(id)).to.deep.equal({ model: 'n', token: 'secret', own: 1 });
    await update({ update: { config: { token: MASK } }, gatewayConfig: { own: 2 } });
    expect(await agents.configOf(id), 'the config is replaced first').to.deep.equal({ token: 'secret', own: 2 });
    expect(await agents.stateOf(id)).to.include({ role: 'lead' });
    expect(agents.events('GatewayConfigChanged')).to.deep.equal([]);
    expect(agents.events('AgentDetailsChanged').map(({ data }) => data.write_to_gateway)).to.deep.equal([
      false,
      false,
      false,
    ]);
  });

  it('shows the config in one frame, the current one if it sets none', async () => {
    const { agents, update } = await open(false);
    await update({ update: { role: 'lead' } });
    await update({ update: { config: { own: 1 } } });
    await update({ update: { status: 'busy' } });
    await update({ update: { status: 'idle', role: 'coder' } });
    const shown = agents.world
      .written()
      .slice(-5)
      .map(({ type, data }) => [type, 'config' in data]);
    expect(shown).to.deep.equal([
      ['AgentDetailsChanged', true],
      ['AgentDetailsChanged', false],
      ['AgentStatusChanged', true],
      ['AgentStatusChanged', false],
      ['AgentDetailsChanged', true],
    ]);
  });

  it('writes the gateway document if requested, or if gateway_config is given and a document is stored', async () => {
    const { agents, update } = await open();
    await update({ update: { role: 'lead' } });
    await update({ gatewayConfig: { model: 'n' }, write_to_gateway: false });
    expect(agents.events('GatewayConfigChanged')).to.have.length(1);
    await update({ gatewayConfig: { model: 'o' }, fields: ['gateway_config'] });
    expect(await agents.entries()).to.deep.include.members([{ ...entry, model: 'o' }]);
    await update({ update: { role: 'boss' }, write_to_gateway: true });
    const written = agents.events('GatewayConfigChanged').slice(1);
    expect(written.map(({ data }) => [data.cause, data.agent_name, data.fields])).to.deep.equal([
      ['agent-updated', 'ada', ['gateway_config']],
      ['agent-updated', 'ada', []],
    ]);
    expect(agents.events('AgentDetailsChanged').map(({ data }) => data.write_to_gateway)).to.deep.equal([
      false,
      false,
      true,
      true,
    ]);
  });

  it('changes nothing if it must write the gateway document and none is stored', async () => {
    const { agents, update } = await open(false);
    const before = agents.world.written().length;
    expect(await outcomeOf(update({ update: { role: 'lead' }, write_to_gateway: true }))).to.equal('502');
    expect(agents.world.written()).to.have.length(before);
    // The read model has a document, the log has none any more.
    const { agents: others, id } = await open(false);
    const late = updateById(
      others.commands,
      others.context(),
      id,
      { update: { role: 'lead' }, fields: [], write_to_gateway: true },
      async () => true,
    );
    const error = await failureOf(late);
    expect(error).to.match(/^Nothing was changed\. No gateway configuration is stored/);
    expect((await others.stateOf(id)).role).to.equal('agent');
  });

  it('renames the gateway entry with the agent', async () => {
    const { agents, id, update } = await open();
    await update({ update: { name: 'eve' }, write_to_gateway: true });
    expect((await agents.stateOf(id)).name).to.equal('eve');
    const [only, ...others] = (await agents.entries()) as Record<string, unknown>[];
    expect(others).to.deep.equal([]);
    expect(only).to.include({ id: 'ada', name: 'eve', extra: 1 });
  });

  it('restores the gateway entry if the change of the agent is rejected', async () => {
    const { agents, id, update } = await open();
    await agents.make('eve');
    const refused = update({ update: { name: 'eve', config: { model: 'n' } }, write_to_gateway: true });
    expect(await outcomeOf(refused)).to.equal('NAME_TAKEN');
    expect(await agents.entries()).to.deep.equal([entry]);
    expect(await agents.configOf(id)).to.deep.equal({ model: 'm', token: 'secret' });
  });

  it('removes the gateway entry again if it is new and the change is rejected', async () => {
    const { agents, update } = await open();
    await agents.make('eve');
    const other = await agents.make('kim');
    const refused = update({ update: { name: 'eve' }, write_to_gateway: true }, other);
    expect(await outcomeOf(refused)).to.equal('NAME_TAKEN');
    expect(await agents.entries()).to.deep.equal([entry]);
  });

  it('leaves the entry if the outcome of the change is unknown', async () => {
    const { agents, id, update } = await open();
    agents.breakStreams(agentStream(1, id));
    const failure = await failureOf(update({ update: { config: { model: 'n' } }, write_to_gateway: true }));
    expect(failure).to.match(/the disk is full/);
    expect(await agents.entries()).to.deep.equal([{ ...entry, model: 'n' }]);
  });

  it('fails with the error of the log if the document cannot be appended', async () => {
    const { agents, id, update } = await open();
    agents.breakStreams('gateway_config');
    const failure = await failureOf(update({ update: { role: 'lead' }, write_to_gateway: true }));
    expect(failure).to.match(/the disk is full/);
    expect((await agents.stateOf(id)).role).to.equal('agent');
  });

  it('returns 404 for an unknown agent', async () => {
    const { update } = await open();
    expect(await outcomeOf(update({ update: { role: 'lead' } }, 99))).to.equal('404');
    expect(await outcomeOf(update({ update: { role: 'lead' }, write_to_gateway: true }, 99))).to.equal('404');
  });
});

describe('the deletion of an agent', () => {
  const open = async () => {
    const agents = agentsMemory();
    const id = await agents.make('ada', { session_key: 'key-1' });
    const remove = () => deleteAgent({ commands: agents.commands, leases: leasesMemory() }, agents.context(), id, true);
    return { agents, id, remove };
  };

  it('frees its names and removes it from the gateway document', async () => {
    const { agents, id, remove } = await open();
    await agents.store({ agents: { list: [{ id: 'ada' }, { id: 'eve' }] } });
    expect(await remove()).to.deep.equal({ name: 'ada', warning: undefined });
    expect((await agents.stateOf(id)).deleted).to.equal(true);
    expect(agents.events('AgentDeleted')[0]?.data).to.include({ role: 'agent', remove_workspace: true });
    expect(agents.events('NameReleased').map(({ data }) => data.name)).to.have.members(['ada', 'key-1']);
    expect(await agents.entries()).to.deep.equal([{ id: 'eve' }]);
    expect(agents.events('GatewayConfigChanged').at(-1)?.data).to.include({
      cause: 'agent-deleted',
      agent_name: 'ada',
    });
    expect(await agents.make('ada', { session_key: 'key-1' })).to.not.equal(id);
  });

  it('does not require a gateway document', async () => {
    const { agents, remove } = await open();
    expect(await remove()).to.deep.equal({ name: 'ada', warning: undefined });
    expect(agents.events('GatewayConfigChanged')).to.deep.equal([]);
    expect(await outcomeOf(remove())).to.equal('404');
  });

  it('fails if the document cannot be appended for an internal reason', async () => {
    const { agents, id, remove } = await open();
    await agents.store({ agents: { list: [{ id: 'ada' }] } });
    agents.breakStreams('gateway_config');
    expect(await failureOf(remove())).to.match(/the disk is full/);
    expect((await agents.stateOf(id)).deleted).to.equal(true);
  });
});
