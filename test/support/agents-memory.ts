/** Agents and a gateway's document on a log in memory, for tests of the commands of agents. */
import { changeGatewayConfig, decideReplace, gatewayDocument } from '../../commands/admin/gateway-config.ts';
import { agentConfigDecider, agentDecider, agentStream } from '../../commands/agents/agents.ts';
import { type Registration, registerAgent, selfRegistration } from '../../commands/agents/registration.ts';
import type { CommandContext } from '../../commands/handler.ts';
import type { GatewayDocument } from '../../shared/contract/admin/gateway-document.ts';
import { anyRoom } from './kit.ts';
import { memoryWorld } from './memory-world.ts';
import { testOrigin } from './world.ts';

export function agentsMemory(now?: () => number) {
  const world = memoryWorld(now);
  const commands = world.process();
  const context = (): CommandContext => ({ origin: testOrigin });
  return {
    world,
    commands,
    context,
    /** Registers an agent like one that has registered itself. Gives its id. */
    async make(name: string, more: Partial<Registration> = {}): Promise<number> {
      const bare = selfRegistration({ name, framework: null, capabilities: [] });
      return (await registerAgent(commands, context(), { ...bare, ...more }, anyRoom)).id;
    },
    stateOf: async (id: number) => (await world.process().load(agentDecider, agentStream(1, id))).state,
    configOf: async (id: number) => (await world.process().load(agentConfigDecider, agentStream(1, id))).state.config,
    /** Stores the gateway's document. */
    store: (document: GatewayDocument) =>
      changeGatewayConfig(commands, context(), (state) => decideReplace(state, document)),
    /** The agents in the gateway's document. */
    entries: async () =>
      ((await gatewayDocument(world.process(), 1)) as { agents?: { list?: unknown } } | null)?.agents?.list,
    /** Events of a type, in order. */
    events: (type: string) => world.written().filter((event) => event.type === type),
    breakStreams: world.breakStreams,
  };
}
