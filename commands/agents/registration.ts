/**
 * Registration of agents: created by an operator, registered by themselves, or imported from the gateway configuration.
 */
import { AppError, conflict } from '../../shared/errors.ts';
import { agentRegistered, agentReturned } from '../../shared/events/agents/registration.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { restored } from '../../shared/secrets.ts';
import { seconds } from '../../shared/time.ts';
import { pause } from '../../shared/waiting.ts';
import { decideWriteAgent, writeToGateway } from '../admin/gateway-config.ts';
import { isTaken } from '../claims.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import type { Room } from '../limits.ts';
import { isHeld, nameTaken } from '../names.ts';
import { createWithNames } from '../naming.ts';
import { hasReserved, reserveId } from '../record-ids.ts';
import { type AgentState, agentDecider, agentStream, existing, notCoordinator } from './agents.ts';
import { bounded } from './config.ts';
import { claimsFor } from './names.ts';
import { configFor } from './templates.ts';

type Config = Readonly<Record<string, unknown>>;
export type Registration = Omit<EventOf<typeof agentRegistered>['data'], 'agent_id'>;

/** @throws AppError 409 when the stream's claim was voided, because the name may now belong to another agent */
export function decideRegister(state: AgentState, agentId: number, registration: Registration): EventDraft[] {
  if (state.registered || Object.keys(state.givenUpNames).length > 0) throw conflict(nameTaken(registration.name));
  return [agentRegistered.draft({ agent_id: agentId, ...registration })];
}

/** An existing agent registers again. @throws AppError 404 */
export const decideReturn = (state: AgentState): EventDraft[] => [agentReturned.draft(existing(state))];

/** The fields of a new agent that most have. */
export const NEW_AGENT = {
  status: 'offline',
  session_key: null,
  soul_content: null,
  config: {},
  template: null,
  runtime_type: null,
  source: 'manual',
  framework: null,
  capabilities: [] as string[],
} as const;

/** An agent created by an operator. @throws AppError 400 when its merged config is too large */
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
    // There are no stored values yet for which a mask could stand.
    config: restored(input.config ?? {}, undefined, 'config') as Config,
    gateway_config: restored(input.gateway_config ?? {}, undefined, 'gateway_config') as Config,
  });
  return {
    ...NEW_AGENT,
    name: input.name,
    role: input.role,
    status: input.status ?? NEW_AGENT.status,
    session_key: input.session_key || null,
    soul_content: input.soul_content ?? null,
    config: bounded(config),
    template,
    runtime_type: input.runtime_type ?? null,
    via: 'operator',
  };
}

/** An agent that registers itself starts with the status idle. */
export function selfRegistration(input: {
  readonly name: string;
  readonly role?: string;
  readonly framework: string | null;
  readonly capabilities: readonly string[];
}): Registration {
  const { name, role = 'agent', framework } = input;
  const capabilities = [...input.capabilities];
  return {
    ...NEW_AGENT,
    name,
    role,
    status: 'idle',
    config: { ...(capabilities.length > 0 && { capabilities }), ...(framework !== null && { framework }) },
    via: 'self',
    framework,
    capabilities,
  };
}

interface Registered {
  readonly id: number;
  readonly executed: Executed;
}

/**
 * Registers an agent.
 *
 * @throws AppError 409 when its name or session key is taken, or the workspace has reached its limit of agents; 413
 *   when it does not fit into an event
 */
export const registerAgent = (
  commands: Commands,
  context: CommandContext,
  registration: Registration,
  room: Room,
): Promise<Registered> => room(context, () => register(commands, context, registration));

async function register(commands: Commands, context: CommandContext, given: Registration): Promise<Registered> {
  const registration = { ...given, name: given.name.normalize('NFC') };
  const { workspace } = context.origin;
  const id = await reserveId(commands, context, 'agent', (one) => agentStream(workspace, one));
  const stream = agentStream(workspace, id);
  const claims = claimsFor(workspace, registration);
  const decide = (state: AgentState) => decideRegister(state, id, registration);
  return { id, executed: await createWithNames(commands, context, agentDecider, stream, claims, decide) };
}

/**
 * Creates an agent for an operator. If writing it to the gateway configuration fails, that is only a warning: the agent
 * exists.
 *
 * @param options.byAgent whether the caller has the key of another agent, which may not choose the coordinator
 * @throws AppError 400, 403, 409, 413
 */
export async function createAgent(
  commands: Commands,
  context: CommandContext,
  room: Room,
  input: Parameters<typeof operatorsRegistration>[0],
  options: { readonly write_to_gateway: boolean; readonly byAgent?: boolean },
): Promise<{ readonly id: number; readonly executed: Executed; readonly warning: string | undefined }> {
  const registration = operatorsRegistration(input);
  if (options.byAgent) refuseCoordinator(registration);
  const registered = await registerAgent(commands, context, registration, room);
  if (!options.write_to_gateway) return { ...registered, warning: undefined };
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

/** @throws AppError 403 when the new agent would be the coordinator */
function refuseCoordinator({ config, session_key }: Registration): void {
  if (config.isDefault) throw notCoordinator('config.isDefault');
  if (session_key?.endsWith(':main')) throw notCoordinator('session_key');
}

/** The part of an agent's record in the response to a registration. */
export interface RegisteredAgent {
  readonly id: number;
  readonly name: string;
  readonly role: string;
  /** Unix seconds. */
  readonly created_at: number;
}

/** Maximum number of attempts on an agent that others are creating or deleting, and the pause between them. */
const MAX_TRIES = 40;
const RETRY_MS = 25;

/**
 * Runs work on the agent with a name while others may be creating or deleting it; the work creates the agent if there
 * is none.
 *
 * @param isAnothers whether the name belongs to another owner and will not be free soon
 * @throws what `work` throws; after many attempts also 404 and 409 `NAME_TAKEN`
 */
export async function onSettledName<T>(work: () => Promise<T>, isAnothers: () => Promise<boolean>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const gone = error instanceof AppError && error.status === 404;
      if ((!isTaken(error) && !gone) || attempt >= MAX_TRIES) throw error;
      if (isTaken(error) && (await isAnothers())) throw error;
      await pause(RETRY_MS);
    }
  }
}

/** Whether a name is taken by a user, or by an agent whose name differs only in spelling. */
export const belongsToAnother =
  (commands: Commands, workspace: number, name: string, find: (name: string) => Promise<unknown>) =>
  async (): Promise<boolean> =>
    (await isHeld(commands, workspace, name)) && (await find(name)) === undefined;

/** What a registration needs to know about the caller and its workspace. */
export interface Registering {
  /** The agent that has a name. */
  readonly find: (name: string) => Promise<RegisteredAgent | undefined>;
  /** The agent whose key the caller has: it may register no other. Undefined: no agent's key. */
  readonly only: number | null | undefined;
  readonly room: Room;
  /** Unix ms. */
  readonly now: () => number;
}

/**
 * An agent registers itself: an existing agent registers again, any other name creates a new agent. Of several
 * concurrent requests one creates it; for the others it already exists.
 *
 * @throws AppError 409 when the name belongs to a user, or to an agent that the caller may not register as
 */
export function registerSelf(
  commands: Commands,
  context: CommandContext,
  input: Parameters<typeof selfRegistration>[0],
  { find, only, room, now }: Registering,
): Promise<{ readonly agent: RegisteredAgent; readonly registered: boolean }> {
  const registration = selfRegistration(input);
  const { name, role } = registration;
  return onSettledName(
    async () => {
      const known = hasReserved(context) ? undefined : await find(name);
      if (known) {
        if (only !== undefined && only !== known.id)
          throw conflict(
            `The name "${name}" belongs to another agent; choose another name, or register with the key of that agent.`,
          );
        await commands.execute(agentDecider, agentStream(context.origin.workspace, known.id), context, decideReturn);
        return { agent: known, registered: false };
      }
      const { id, executed } = await registerAgent(commands, context, registration, room);
      return { agent: { id, name, role, created_at: seconds(executed.events[0]?.meta.at ?? now()) }, registered: true };
    },
    belongsToAnother(commands, context.origin.workspace, name, find),
  );
}
