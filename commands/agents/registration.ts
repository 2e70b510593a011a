/**
 * How agents come into being: created by an operator, registered by themselves, or imported from the gateway
 * configuration.
 */
import { AppError, conflict } from '../../shared/errors.ts';
import { agentRegistered, agentReturned } from '../../shared/events/agents/registration.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { restored } from '../../shared/secrets.ts';
import { seconds } from '../../shared/time.ts';
import { decideWriteAgent, writeToGateway } from '../admin/gateway-config.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { claimAll, isRefusal, releaseAll } from '../naming.ts';
import { hasReserved, reserveId } from '../reserve.ts';
import { type AgentState, agentDecider, agentStream, existing } from './agents.ts';
import { bounded } from './config.ts';
import { agentNameKind, claimsFor } from './names.ts';
import { configFor } from './templates.ts';

type Config = Readonly<Record<string, unknown>>;
export type Registration = Omit<EventOf<typeof agentRegistered>['data'], 'agentId'>;

/** @throws AppError 409 when the stream's claim was voided, because the name may now belong to another agent */
export function decideRegister(state: AgentState, agentId: number, registration: Registration): EventDraft[] {
  if (state.registered || Object.keys(state.givenUpNames).length > 0)
    throw conflict(agentNameKind.taken(registration.name));
  return [agentRegistered.draft({ agentId, ...registration })];
}

/** An existing agent registers again. @throws AppError 404 */
export const decideReturn = (state: AgentState): EventDraft[] => [agentReturned.draft(existing(state))];

/** An operator's new agent. @throws AppError 400 when its config, put together, is too large */
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
    // There are no hidden values yet that a mask could stand for.
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

/** An agent that registers itself starts as idle. */
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
    const decide = (state: AgentState) => decideRegister(state, id, registration);
    const executed = await commands.execute(agentDecider, stream, context, decide, { fresh: true });
    return { id, executed };
  } catch (error) {
    if (isRefusal(error)) await releaseAll(commands, context, claims, stream);
    throw error;
  }
}

/**
 * Creates an operator's agent. If writing it to the gateway configuration fails, that is only a warning: the agent
 * exists.
 *
 * @throws AppError 400, 409, 413
 */
export async function createAgent(
  commands: Commands,
  context: CommandContext,
  input: Parameters<typeof operatorsRegistration>[0],
  options: { readonly writeToGateway: boolean },
): Promise<{ readonly id: number; readonly executed: Executed; readonly warning: string | undefined }> {
  const registration = operatorsRegistration(input);
  const registered = await registerAgent(commands, context, registration);
  if (!options.writeToGateway) return { ...registered, warning: undefined };
  try {
    await writeToGateway(commands, context, (state) => decideWriteAgent(state, 'agent-created', registration));
    return { ...registered, warning: undefined };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return {
      ...registered,
      warning: `The agent was created, but not written to the gateway configuration. ${error.message}`,
    };
  }
}

/** The part of an agent's record that the answer to a registration contains. */
export interface RegisteredAgent {
  readonly id: number;
  readonly name: string;
  readonly role: string;
  /** Unix seconds. */
  readonly created_at: number;
}

/**
 * An agent registers itself: an existing agent registers again, any other name creates a new agent.
 *
 * @param known the agent that has this name, if any
 * @param now Unix ms
 * @throws AppError 404 when the agent was deleted at the same time; 409 when its name was taken at the same time
 */
export async function registerSelf(
  commands: Commands,
  context: CommandContext,
  input: Parameters<typeof selfRegistration>[0],
  known: RegisteredAgent | undefined,
  now: () => number,
): Promise<{ readonly agent: RegisteredAgent; readonly registered: boolean }> {
  if (known && !hasReserved(context)) {
    await commands.execute(agentDecider, agentStream(context.origin.workspace, known.id), context, decideReturn);
    return { agent: known, registered: false };
  }
  const registration = selfRegistration(input);
  const { id, executed } = await registerAgent(commands, context, registration);
  const { name, role } = registration;
  return { agent: { id, name, role, created_at: seconds(executed.events[0]?.meta.at ?? now()) }, registered: true };
}
