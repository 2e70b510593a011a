/** Commands that change an agent's fields, by name or by id, or delete the agent. */
import type { GatewayDocument } from '../../shared/contract/admin/gateway-document.ts';
import { AppError, conflict, isRefusal, notFound } from '../../shared/errors.ts';
import type { Leases } from '../../shared/ports/agents/leases.ts';
import { MASK, restored } from '../../shared/secrets.ts';
import {
  decidePutBack,
  decideRemoveAgent,
  decideWriteAgent,
  noGatewayConfig,
  writeToGateway,
} from '../admin/gateway-config.ts';
import { entryOf } from '../admin/gateway-document.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { executeWithNames, releaseAll } from '../naming.ts';
import {
  type AgentState,
  type AgentUpdate,
  agentConfigDecider,
  agentDecider,
  agentStream,
  decideDelete,
  decideUpdate,
  existing,
  notCoordinator,
  type UpdateMode,
} from './agents.ts';
import { bounded } from './config.ts';
import { afterSummary } from './leases.ts';
import { claimsFor, namedAgent, refuseName } from './names.ts';

type Config = Readonly<Record<string, unknown>>;

/** Runs an update. @throws AppError 404; 409 when a name or session key is taken */
export async function updateAgent(
  commands: Commands,
  context: CommandContext,
  id: number,
  given: AgentUpdate,
  mode: UpdateMode,
  /** Throws if the update must not be applied to this state. */
  check: (state: AgentState) => void = () => undefined,
): Promise<Executed> {
  const update = given.name === undefined ? given : { ...given, name: given.name.normalize('NFC') };
  const decide = (state: AgentState) => {
    check(state);
    // Also when the new name counts as equal to the old one, and so needs no claim.
    if (update.name !== undefined && update.name !== state.name) refuseName(update.name);
    return decideUpdate(state, update, mode);
  };
  const { workspace } = context.origin;
  const stream = agentStream(workspace, id);
  if (update.name === undefined && update.session_key === undefined)
    return commands.execute(agentDecider, stream, context, decide);
  return executeWithNames(commands, context, namedAgent, stream, claimsFor(workspace, update), decide);
}

interface FromConfig {
  /** Throws if the update must not be applied to this state. */
  readonly check?: (state: AgentState) => void;
  /** Set if `merge` itself has side effects, so that it never gets a cached config. */
  readonly effects?: boolean;
}

/** Maximum number of attempts for an update that depends on the current config. */
const MAX_TRIES = 8;

/**
 * Runs an update whose new config is derived from the current one.
 *
 * @param merge returns the update for the current config. The first call may get a cached config that others have
 *   changed since; then it is called again.
 * @throws AppError 404; 409 when a name is taken or the config keeps changing
 */
export async function updateFromConfig(
  commands: Commands,
  context: CommandContext,
  id: number,
  mode: UpdateMode,
  merge: (config: Config) => AgentUpdate | Promise<AgentUpdate>,
  { check = () => undefined, effects = false }: FromConfig = {},
): Promise<Executed> {
  const stream = agentStream(context.origin.workspace, id);
  for (let attempt = 1; ; attempt++) {
    // The decision on the update checks whether this is still the current config.
    const recent = attempt === 1 && !effects;
    const { state: loaded } = await commands.load(agentConfigDecider, stream, { recent });
    const resting = { ...mode, ...(mode.via === 'id' && { config: loaded.config }) };
    let moved = recent;
    try {
      const update = await merge(loaded.config);
      moved = false;
      return await updateAgent(commands, context, id, update, resting, (state) => {
        moved = state.registered && state.configVersion !== loaded.version;
        if (moved)
          throw conflict('The config of this agent is being changed by other requests; try again.', { code: 'BUSY' });
        check(state);
      });
    } catch (error) {
      if (!moved || attempt >= MAX_TRIES) throw error;
    }
  }
}

/** @throws AppError 403 when the agent's config would make it the coordinator */
function refuseCoordinator(present: Config, next: Config): void {
  if (next.isDefault && !present.isDefault) throw notCoordinator('config.isDefault');
}

/**
 * The agent's own update. Secrets that were shown to it masked stay unchanged.
 *
 * @param byItself whether the caller has the agent's key
 * @throws AppError 400, 403, 404, 409
 */
export function updateByName(
  commands: Commands,
  context: CommandContext,
  { id, name }: { readonly id: number; readonly name: string },
  update: AgentUpdate,
  byItself = false,
): Promise<Executed> {
  const mode = { via: 'name', byItself } as const;
  // The agent was selected by its name; one that has been renamed since is not meant.
  const check = (state: AgentState) => {
    if (state.registered && state.name !== name) throw notFound('Agent');
  };
  const { config } = update;
  if (config === undefined || !((byItself && config.isDefault) || JSON.stringify(config).includes(MASK)))
    return updateAgent(commands, context, id, update, mode, check);
  const merge = (present: Config) => {
    if (byItself) refuseCoordinator(present, config);
    return { ...update, config: bounded(restored(config, present, 'config') as Config) };
  };
  return updateFromConfig(commands, context, id, mode, merge, { check });
}

/** An operator's update: fields to set, and keys to be merged into the config. */
export interface OperatorsUpdate {
  readonly update: AgentUpdate;
  readonly gatewayConfig?: Config | undefined;
  /** Names of the fields that were sent. */
  readonly fields: readonly string[];
  /** Undefined: true if `gatewayConfig` is given and a gateway configuration is stored. */
  readonly write_to_gateway: boolean | undefined;
  /** Whether the caller has the agent's key. */
  readonly byItself?: boolean;
}

/**
 * Runs an operator's update. The gateway's document is written first: when that is refused, nothing was changed; if the
 * agent's own change is refused afterwards, its previous entry is restored.
 *
 * @param isStored whether a gateway configuration is stored
 * @throws AppError 400, 403, 404, 409; 502 when the gateway's document cannot be written
 */
export async function updateById(
  commands: Commands,
  context: CommandContext,
  id: number,
  { update, gatewayConfig, fields, write_to_gateway: asked, byItself = false }: OperatorsUpdate,
  isStored: () => Promise<boolean>,
): Promise<Executed> {
  const stored = (asked ?? gatewayConfig !== undefined) && (await isStored());
  const writes = asked ?? stored;
  if (writes && !stored) throw new AppError(502, `Nothing was changed. ${noGatewayConfig().message}`);
  const merged = (present: Config): AgentUpdate => {
    if (update.config === undefined && gatewayConfig === undefined) return update;
    const base = update.config === undefined ? present : restored(update.config, present, 'config');
    const over = restored(gatewayConfig ?? {}, present, 'gateway_config');
    const next = { ...(base as Config), ...(over as Config) };
    if (byItself) refuseCoordinator(present, next);
    return { ...update, config: bounded(next) };
  };
  const mode = { via: 'id', write_to_gateway: writes, byItself } as const;
  if (!writes) return updateFromConfig(commands, context, id, mode, merged);

  let putBack: GatewayEntry | undefined;
  let named = '';
  const written = async (present: Config): Promise<AgentUpdate> => {
    const next = merged(present);
    const { state } = await commands.load(agentDecider, agentStream(context.origin.workspace, id));
    named = existing(state).name;
    const entry = { name: next.name ?? named, before: putBack?.name ?? named, config: next.config ?? present, fields };
    const before = await writeEntry(commands, context, entry);
    putBack = { name: entry.name, before: putBack ? putBack.before : before };
    return next;
  };
  const sameName = (state: AgentState) => {
    if (state.registered && state.name !== named)
      throw conflict('This agent is being renamed by another request; try again.', { code: 'BUSY' });
  };
  try {
    return await updateFromConfig(commands, context, id, mode, written, { check: sameName, effects: true });
  } catch (error) {
    const undo = putBack;
    if (undo && isRefusal(error)) {
      await writeToGateway(commands, context, (state) => decidePutBack(state, undo.name, undo.before));
    }
    throw error;
  }
}

/** An agent's entry before the write; undefined: there was none. */
interface GatewayEntry {
  /** The name it has now. */
  readonly name: string;
  readonly before: GatewayDocument | undefined;
}

/**
 * Writes an agent to the gateway's document.
 *
 * @returns its previous entry
 * @throws AppError 502 when the write is refused
 */
async function writeEntry(
  commands: Commands,
  context: CommandContext,
  entry: Parameters<typeof decideWriteAgent>[2],
): Promise<GatewayDocument | undefined> {
  let before: GatewayDocument | undefined;
  try {
    await writeToGateway(commands, context, (state) => {
      before = state.document === null ? undefined : entryOf(state.document, entry.before ?? entry.name);
      return decideWriteAgent(state, 'agent-updated', entry);
    });
  } catch (error) {
    if (!isRefusal(error)) throw error;
    throw new AppError(502, `Nothing was changed. ${(error as AppError).message}`, { cause: error });
  }
  return before;
}

export interface DeletionParts {
  readonly commands: Commands;
  readonly leases: Leases;
}

/**
 * Deletes an agent, frees its names and removes it from the gateway configuration. A failure of the last step is only a
 * warning, because the agent has already been deleted.
 *
 * @throws AppError 404
 */
export async function deleteAgent(
  { commands, leases }: DeletionParts,
  context: CommandContext,
  id: number,
  removeWorkspace: boolean,
): Promise<{ readonly name: string; readonly warning: string | undefined }> {
  const { tenant, workspace } = context.origin;
  const stream = agentStream(workspace, id);
  let last: AgentState | undefined;
  await afterSummary({ commands, leases }, { tenant, workspace, agent: id }, () =>
    commands.execute(agentDecider, stream, context, (state) => {
      last = state;
      return decideDelete(state, removeWorkspace);
    }),
  );
  const { name, session_key } = last as AgentState;
  await releaseAll(commands, context, claimsFor(workspace, { name, session_key }), stream);
  try {
    await writeToGateway(commands, context, (state) => decideRemoveAgent(state, name));
    return { name, warning: undefined };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return {
      name,
      warning: `The agent was deleted, but it is still in the gateway configuration. ${error.message}`,
    };
  }
}
