/** Every event type that Signalbox writes or has ever written. Nothing is found by scanning folders. */
import { accessEvents } from './access.ts';
import { agentEvents } from './agent.ts';
import { agentKeyEvents } from './agent-key.ts';
import { agentLifeEvents } from './agent-life.ts';
import { agentMessageEvents } from './agent-message.ts';
import type { EventDefinition } from './define.ts';
import { gatewayConfigEvents } from './gateway-config.ts';
import { nameClaimed, nameClaimVoided, nameReleased } from './names.ts';
import { operationsEvents } from './operations.ts';
import { userEvents } from './user.ts';

const definitions = [
  ...userEvents,
  ...accessEvents,
  ...agentEvents,
  ...agentLifeEvents,
  ...agentKeyEvents,
  ...agentMessageEvents,
  ...gatewayConfigEvents,
  ...operationsEvents,
  nameClaimed,
  nameReleased,
  nameClaimVoided,
] as unknown as readonly EventDefinition[];

export const catalogue: ReadonlyMap<string, EventDefinition> = new Map(
  definitions.map((definition) => [definition.type, definition]),
);
if (catalogue.size !== definitions.length) throw new Error('two event definitions share a type');
