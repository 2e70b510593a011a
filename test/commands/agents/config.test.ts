/** Agents' configs stay within the bound of every stored value, whatever they are merged from. */
import { expect } from 'chai';
import { changeGatewayConfig, decideReplace } from '../../../commands/admin/gateway-config.ts';
import { agentConfigDecider, agentStream } from '../../../commands/agents/agents.ts';
import { updateById, updateByName } from '../../../commands/agents/changes.ts';
import { operatorsRegistration, registerAgent, selfRegistration } from '../../../commands/agents/registration.ts';
import { NOTHING_STORED, syncAgents } from '../../../commands/agents/sync.ts';
import type { CommandContext, Commands } from '../../../commands/handler.ts';
import type { GatewayDocument } from '../../../shared/contract/admin/gateway-document.ts';
import { AppError } from '../../../shared/errors.ts';
import { MASK } from '../../../shared/secrets.ts';
import { VALUE_BOUNDS } from '../../../shared/storable.ts';
import { anyRoom } from '../../support/kit.ts';
import { gate, type MemoryWorld, memoryWorld } from '../../support/memory-world.ts';
import { testOrigin } from '../../support/world.ts';

const HALF = 'x'.repeat(VALUE_BOUNDS.characters / 2);

describe('agent configs', () => {
  const context: CommandContext = { origin: testOrigin };
  const ids = new Map<string, number>();
  let world: MemoryWorld;
  let commands: Commands;

  beforeEach(async () => {
    world = memoryWorld();
    commands = world.process();
    ids.clear();
    await make('ada', { own: HALF });
  });

  async function make(name: string, config: GatewayDocument): Promise<void> {
    const bare = selfRegistration({ name, framework: null, capabilities: [] });
    ids.set(name, (await registerAgent(commands, context, { ...bare, config }, anyRoom)).id);
  }
  const ada = () => ids.get('ada') as number;
  const store = (document: GatewayDocument) =>
    changeGatewayConfig(commands, context, (state) => decideReplace(state, document));
  const configOf = async (id: number) =>
    (await world.process().load(agentConfigDecider, agentStream(1, id))).state.config;
  const sync = () =>
    syncAgents(commands, context, anyRoom, async (names) => new Map([...ids].filter(([name]) => names.includes(name))));
  const change = (gatewayConfig: GatewayDocument, writeToGateway: boolean) =>
    updateById(
      commands,
      context,
      ada(),
      { update: { role: 'y' }, gatewayConfig, fields: [], write_to_gateway: writeToGateway },
      async () => true,
    );

  /** The change is refused by the bound, and nothing was written. */
  async function refused(status: number, message: RegExp, work: () => unknown): Promise<void> {
    const before = world.written().length;
    const error = await Promise.resolve()
      .then(work)
      .then(
        () => undefined,
        (reason: unknown) => reason,
      );
    expect(error).to.be.instanceOf(AppError);
    expect((error as AppError).status).to.equal(status);
    expect((error as AppError).message).to.match(message);
    expect(world.written().length, 'events').to.equal(before);
  }
  const tooLarge = /must have at most 200000 characters as JSON.*nothing was changed/;

  it('cannot exceed the limit through gateway_config, whether or not the gateway is written', async () => {
    await refused(400, tooLarge, () => change({ more: HALF }, false));
    await store({ agents: { list: [] } });
    await refused(400, tooLarge, () => change({ more: HALF }, true));
    await change({ own: 1, more: HALF }, true);
    expect(await configOf(ada())).to.deep.equal({ own: 1, more: HALF });
  });

  it('cannot exceed the limit through masks of long secrets', async () => {
    await make('bob', { token: HALF });
    const update = { config: { token: MASK, more: HALF } };
    const id = ids.get('bob') as number;
    await refused(400, tooLarge, () => updateByName(commands, context, { id, name: 'bob' }, update));
    await updateByName(commands, context, { id, name: 'bob' }, { config: { token: MASK, more: 1 } });
    expect(await configOf(id)).to.deep.equal({ token: HALF, more: 1 });
  });

  it('cannot exceed the limit when created, with or without a template', () => {
    const parts = { name: 'new', role: 'x', config: { own: HALF } };
    for (const more of [{ gateway_config: { more: HALF } }, { template: 'developer', config: { a: HALF, b: HALF } }])
      expect(() => operatorsRegistration({ ...parts, ...more })).to.throw(AppError, tooLarge);
    expect(operatorsRegistration({ ...parts, gateway_config: { more: 1 } }).config).to.deep.equal({
      own: HALF,
      more: 1,
    });
  });

  it('cannot exceed the limit through an import, which then changes nothing', async () => {
    expect((await sync()).message).to.equal(NOTHING_STORED);
    const list = (...entries: GatewayDocument[]) => ({ agents: { list: entries } });
    await store(list({ id: 'first' }, { id: 'ada', model: HALF }));
    await refused(422, /cannot be imported: the config of the agent "ada" .* 200000/, sync);
    await store(list({ id: 'first' }, { id: 'new', model: HALF, tools: HALF }));
    await refused(422, /"new"/, sync);
    await store(list({ id: 'first' }, { id: 'ada', model: 'm' }));
    expect(await sync()).to.deep.include({ created: 1, updated: 1 });
    expect(await configOf(ada())).to.deep.equal({ own: HALF, model: 'm' });
  });

  it('keep the changes of another process if a change of this process fails', async () => {
    const other = world.process();
    const merge = (through: Commands, gatewayConfig: GatewayDocument) =>
      updateById(
        through,
        context,
        ada(),
        { update: {}, gatewayConfig, fields: [], write_to_gateway: false },
        async () => false,
      );
    await merge(commands, { first: 1 });
    const held = gate();
    world.beforeAppend = async (_, events) => {
      if (!JSON.stringify(events).includes('late')) return;
      world.beforeAppend = async () => undefined;
      await held.wait();
    };
    const late = merge(commands, { late: 1 });
    await held.reached;
    const next = merge(commands, { next: 1 });
    await merge(other, { other: 1 });
    held.open();
    await Promise.all([late, next]);
    expect(await configOf(ada())).to.deep.equal({ own: HALF, first: 1, late: 1, next: 1, other: 1 });
  });
});
