/** The agent to which an event is attributed: by ids in the event, never by names or other texts. */
import type { DomainEvent, EventDefinition } from '../define.ts';

/**
 * How an action is attributed to an agent. `key`: the request used the agent's own key. `header`: the caller named the
 * agent in `x-agent-name`. `call`: only the agent makes such calls, for example its heartbeat.
 */
export const ATTRIBUTIONS = ['key', 'header', 'call'] as const;
export type Attribution = (typeof ATTRIBUTIONS)[number];

export interface Attributed {
  readonly agent_id: number;
  readonly by: Attribution;
}

/** The agent behind an event, by the strongest evidence; undefined: none. */
export function attributedTo(definition: EventDefinition, event: DomainEvent): Attributed | undefined {
  const { actor, agent } = event.meta;
  if (actor.type === 'agent') return { agent_id: actor.id, by: 'key' };
  if (agent !== undefined) return { agent_id: agent, by: 'header' };
  const self = definition.self?.(event);
  return self === undefined ? undefined : { agent_id: self, by: 'call' };
}
