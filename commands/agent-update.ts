/** Changes of an agent's fields, by name or by id, and its deletion. */
import { conflict } from '../shared/errors.ts';
import { agentDeleted, agentDetailsChanged } from '../shared/events/agent.ts';
import { agentStatusChanged } from '../shared/events/agent-life.ts';
import type { EventDraft, EventOf } from '../shared/events/define.ts';
import { type AgentState, agentConfigDecider, agentDecider, agentStream, existing } from './agent.ts';
import { claimsFor, executeWithNames, releaseAll } from './agent-names.ts';
import type { CommandContext, Commands, Executed } from './handler.ts';

type Changes = EventOf<typeof agentDetailsChanged>['data']['changes'];

/** Fields to set; absent means unchanged. */
export interface AgentUpdate extends Changes {
  readonly status?: string;
}

export interface UpdateMode {
  /** `name`: the agent speaks for itself, a status is a sign of life; `id`: an operator; `sync`: the gateway's configuration. */
  readonly via: 'name' | 'id' | 'sync';
  readonly writeToGateway?: boolean;
}

/**
 * Sets fields. Those that are so already are left out, as far as the state knows them. The status has an event of its
 * own, and only when it really changes.
 *
 * @throws AppError 404
 */
export function decideUpdate(state: AgentState, update: AgentUpdate, mode: UpdateMode): EventDraft[] {
  const agent = existing(state);
  const { status, ...fields } = update;
  const { via, writeToGateway = false } = mode;
  const changes = Object.fromEntries(
    Object.entries(fields).filter(
      ([field, value]) => value !== undefined && !(field in KNOWN && state[field as keyof typeof KNOWN] === value),
    ),
  ) as Changes;
  const changed = status !== undefined && status !== state.status;
  const repeated = status !== undefined && !changed;
  const others = Object.keys(changes).filter((field) => field !== 'lastActivity').length > 0;
  // The event of the status carries the activity too, when there is nothing else to say.
  const details = others || (changes.lastActivity !== undefined && !changed) || (repeated && via === 'name');
  const drafts: EventDraft[] = [];
  if (changed) {
    drafts.push(
      agentStatusChanged.draft({
        ...agent,
        from: state.status,
        to: status,
        cause: 'update',
        lastActivity: update.lastActivity ?? null,
        seen: via === 'name',
        announced: details,
      }),
    );
  }
  if (details) {
    drafts.push(agentDetailsChanged.draft({ ...agent, changes, via, writeToGateway, status: status ?? null }));
  }
  return drafts;
}

/** Fields of which the state knows the value. */
const KNOWN = { name: true, role: true, sessionKey: true, runtimeType: true } as const;

/** Runs an update. @throws AppError 404; 409 when a name or session key is taken */
export async function updateAgent(
  commands: Commands,
  context: CommandContext,
  id: number,
  update: AgentUpdate,
  mode: UpdateMode,
  /** Throws when the update must not be decided on this state. */
  check: (state: AgentState) => void = () => undefined,
): Promise<Executed> {
  const decide = (state: AgentState) => {
    check(state);
    return decideUpdate(state, update, mode);
  };
  const { workspace } = context.origin;
  if (update.name === undefined && update.sessionKey === undefined)
    return commands.execute(agentDecider, agentStream(workspace, id), context, decide);
  return executeWithNames(commands, context, id, claimsFor(workspace, update), decide);
}

/** Tries of an update that rests on the config before it is given up. */
const MAX_TRIES = 5;

/**
 * Runs an update whose new config is made from the present one.
 *
 * @param merge the update for the present config
 * @throws AppError 404; 409 when a name is taken, or the config keeps changing
 */
export async function updateFromConfig(
  commands: Commands,
  context: CommandContext,
  id: number,
  mode: UpdateMode,
  merge: (config: Readonly<Record<string, unknown>>) => AgentUpdate,
  check: (state: AgentState) => void = () => undefined,
): Promise<Executed> {
  const stream = agentStream(context.origin.workspace, id);
  for (let attempt = 1; ; attempt++) {
    const { state: loaded } = await commands.load(agentConfigDecider, stream);
    let moved = false;
    try {
      return await updateAgent(commands, context, id, merge(loaded.config), mode, (state) => {
        moved = state.registered && state.configVersion !== loaded.version;
        if (moved) throw conflict('The config of this agent is being changed by others; try again.', { code: 'BUSY' });
        check(state);
      });
    } catch (error) {
      if (!moved || attempt >= MAX_TRIES) throw error;
    }
  }
}

/** @throws AppError 404 */
export function decideDelete(state: AgentState, removeWorkspace: boolean): EventDraft[] {
  return [agentDeleted.draft({ ...existing(state), role: state.role, removeWorkspace })];
}

/** Deletes an agent and frees its names. @throws AppError 404 */
export async function deleteAgent(
  commands: Commands,
  context: CommandContext,
  id: number,
  removeWorkspace: boolean,
): Promise<{ readonly name: string }> {
  const { workspace } = context.origin;
  const stream = agentStream(workspace, id);
  let last: AgentState | undefined;
  await commands.execute(agentDecider, stream, context, (state) => {
    last = state;
    return decideDelete(state, removeWorkspace);
  });
  const { name, sessionKey } = last as AgentState;
  await releaseAll(commands, context, claimsFor(workspace, { name, sessionKey }), stream);
  return { name };
}
