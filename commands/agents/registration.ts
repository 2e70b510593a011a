/** New agents: made by an operator, by themselves, or from the gateway's configuration. */
import { conflict } from '../../shared/errors.ts';
import { agentRegistered, agentReturned } from '../../shared/events/agents/registration.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { restored } from '../../shared/secrets.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { reserveId } from '../reserve.ts';
import { type AgentState, agentDecider, agentStream, existing } from './agents.ts';
import { bounded } from './config.ts';
import { agentNameKind, claimAll, claimsFor, isRefusal, releaseAll } from './names.ts';
import { configFor } from './templates.ts';

type Config = Readonly<Record<string, unknown>>;
export type Registration = Omit<EventOf<typeof agentRegistered>['data'], 'agentId'>;

/** @throws AppError 409 when the stream's claim was voided: somebody else has the name by now */
export function decideRegister(state: AgentState, agentId: number, registration: Registration): EventDraft[] {
  if (state.registered || Object.keys(state.left).length > 0) throw conflict(agentNameKind.taken(registration.name));
  return [agentRegistered.draft({ agentId, ...registration })];
}

/** An operator's new agent. @throws AppError 400 when its config, put together, is too large */
/** An agent that exists registers itself again. @throws AppError 404 */
export const decideReturn = (state: AgentState): EventDraft[] => [agentReturned.draft(existing(state))];

/** An operator's new agent. */
export function operatorsRegistration(input: {
  readonly name: string;
  readonly role: string;
  readonly status?: string;
  readonly session_key?: string | null;
  readonly soul_content?: string | null;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly template?: string | null;
  readonly gateway_config?: Readonly<Record<string, unknown>>;
  readonly runtime_type?: string | null;
}): Registration {
  const { config, template } = configFor({
    ...input,
    // A mask in them cannot stand for anything yet.
    config: restored(input.config ?? {}, undefined, 'config') as Config,
    gateway_config: restored(input.gateway_config ?? {}, undefined, 'gateway_config') as Config,
  });
  return {
    name: input.name,
    role: input.role,
    status: input.status ?? 'offline',
    sessionKey: input.session_key || null,
    soulContent: input.soul_content ?? null,
    config: bounded(config),
    template,
    runtimeType: input.runtime_type ?? null,
    source: 'manual',
    via: 'operator',
    framework: null,
    capabilities: [],
  };
}

/** An agent that registers itself is idle at once. */
export function selfRegistration(input: {
  readonly name: string;
  readonly role?: string;
  readonly framework: string | null;
  readonly capabilities: readonly string[];
}): Registration {
  const { name, role = 'agent', framework } = input;
  const capabilities = [...input.capabilities];
  return {
    name,
    role,
    status: 'idle',
    sessionKey: null,
    soulContent: null,
    config: { ...(capabilities.length > 0 && { capabilities }), ...(framework !== null && { framework }) },
    template: null,
    runtimeType: null,
    source: 'manual',
    via: 'self',
    framework,
    capabilities,
  };
}

/** Registers an agent. @throws AppError 409 when its name or session key is taken; 413 when it does not fit an event */
export async function registerAgent(
  commands: Commands,
  context: CommandContext,
  registration: Registration,
): Promise<{ readonly id: number; readonly executed: Executed }> {
  const { workspace } = context.origin;
  const id = await reserveId(commands, context, 'agent', (one) => agentStream(workspace, one));
  const stream = agentStream(workspace, id);
  const claims = claimsFor(workspace, registration);
  await claimAll(commands, context, claims, stream, (claimed) => releaseAll(commands, context, claimed, stream));
  try {
    const executed = await commands.execute(agentDecider, stream, context, (state) =>
      decideRegister(state, id, registration),
    );
    return { id, executed };
  } catch (error) {
    if (isRefusal(error)) await releaseAll(commands, context, claims, stream);
    throw error;
  }
}
