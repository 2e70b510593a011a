/**
 * The agent: the state of its stream, and the decisions about its record. `changes.ts` has the commands that run them.
 */
import { forbidden, notFound } from '../../shared/errors.ts';
import {
  agentDeleted,
  agentDetailsChanged,
  agentHidden,
  agentShown,
  agentStatusChanged,
} from '../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived, agentWoken } from '../../shared/events/agents/heartbeat.ts';
import { agentKeyIssued, agentKeyRevoked } from '../../shared/events/agents/keys.ts';
import { agentMemoryCleared, agentMemoryFieldsSet, agentMemoryWritten } from '../../shared/events/agents/memory.ts';
import { agentRegistered, agentReturned } from '../../shared/events/agents/registration.ts';
import { agentSoulChanged } from '../../shared/events/agents/souls.ts';
import { connectionClosed, connectionOpened, connectionSeen } from '../../shared/events/connections.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { nameKeys } from '../../shared/names.ts';
import type { NameKind } from '../claims.ts';
import { defineDecider, on } from '../decider.ts';
import { giveUpName, type NameOwnerState, nameKey, namingFolds, SHARED_NAME } from '../naming.ts';

/**
 * The state of an agent that is cached between commands. It omits the texts, because they are large and decisions need
 * only their lengths.
 */
export interface AgentState extends NameOwnerState {
  readonly registered: boolean;
  readonly deleted: boolean;
  /** 0 until registered. */
  readonly id: number;
  readonly name: string;
  readonly role: string;
  readonly status: string;
  readonly session_key: string | null;
  readonly hidden: boolean;
  readonly runtime_type: string | null;
  /** How often the config has been set. The config itself is loaded only to be merged (`agentConfigDecider`). */
  readonly configVersion: number;
  /** Characters. */
  readonly soulLength: number;
  readonly memoryLength: number;
  /** Length of the other memory keys as JSON, characters; 0 if there are none. */
  readonly memoryFields: number;
  /** How often those keys have been set or cleared. They are loaded only to be merged (`memory.ts`). */
  readonly memoryVersion: number;
  /** Last sign of life, Unix ms: a heartbeat, a status set by a caller, or the registration. */
  readonly aliveAt: number;
  /** What waited for the agent at its last heartbeat (`waitingOf`); null: that heartbeat is not the last thing it did. */
  readonly waiting: string | null;
  /** Connection of a command-line tool; `seenAt`: its last heartbeat, or its start, Unix ms. */
  readonly connection: { readonly id: string; readonly seenAt: number } | null;
  /** Keys that are not revoked, by id, with their expiry in Unix seconds; null: never. */
  readonly keys: Readonly<Record<number, number | null>>;
}

const initial: AgentState = {
  registered: false,
  deleted: false,
  id: 0,
  name: '',
  role: '',
  status: 'offline',
  session_key: null,
  hidden: false,
  runtime_type: null,
  configVersion: 0,
  soulLength: 0,
  memoryLength: 0,
  memoryFields: 0,
  memoryVersion: 0,
  aliveAt: 0,
  waiting: null,
  connection: null,
  keys: {},
  givenUpNames: {},
};

export const agentStream = (workspace: number, id: number): string => `agent-${workspace}-${id}`;

export const agentDecider = defineDecider<AgentState>({
  kind: 'agent',
  // Heartbeats make these streams long. In version 2, `givenUpNames` was called `left`; up to 3 there was no connection; up to
  // 4, keys had no expiry; up to 5, names were given up as they were written; up to 6, nothing was known of what waited.
  snapshotVersion: 7,
  initial,
  folds: [
    on(agentRegistered, (_, { data, at }) => ({
      ...initial,
      registered: true,
      id: data.agent_id,
      name: data.name,
      role: data.role,
      status: data.status,
      session_key: data.session_key,
      runtime_type: data.runtime_type,
      configVersion: 1,
      soulLength: data.soul_content?.length ?? 0,
      aliveAt: at,
    })),
    // By far the most frequent events. For copies of copies, Object.assign is several times as fast as spread.
    on(agentHeartbeatReceived, (state, { data, at }) =>
      Object.assign({}, state, {
        status: 'idle',
        aliveAt: at,
        waiting: waitingOf(data.work_items_count, data.work_item_types),
      }),
    ),
    on([agentReturned, agentWoken], (state, { at }) => ({ ...state, status: 'idle', aliveAt: at, waiting: null })),
    on(agentStatusChanged, (state, { data, at }) => ({
      ...state,
      status: data.to,
      waiting: null,
      aliveAt: data.cause === 'sweep' ? state.aliveAt : at,
    })),
    on(agentDetailsChanged, (state, { data, at }) => withDetails(state, data, at)),
    on(agentSoulChanged, (state, { data }) => ({ ...state, soulLength: data.soul_content.length })),
    on(agentMemoryWritten, (state, { data }) => ({ ...state, memoryLength: data.size })),
    on(agentMemoryFieldsSet, (state, { data }) => ({
      ...state,
      memoryFields: sizeOfFields(data.fields),
      memoryVersion: state.memoryVersion + 1,
    })),
    on(agentMemoryCleared, (state) => ({
      ...state,
      memoryLength: 0,
      memoryFields: 0,
      memoryVersion: state.memoryVersion + 1,
    })),
    on(connectionOpened, (state, { data, at }) => ({
      ...state,
      aliveAt: at,
      connection: { id: data.connection_id, seenAt: at },
    })),
    on(connectionSeen, (state, { data, at }) =>
      state.connection?.id === data.connection_id
        ? { ...state, connection: { id: data.connection_id, seenAt: at } }
        : state,
    ),
    on(connectionClosed, (state, { data }) =>
      state.connection?.id === data.connection_id ? { ...state, connection: null } : state,
    ),
    on(agentHidden, (state) => ({ ...state, hidden: true })),
    on(agentShown, (state) => ({ ...state, hidden: false })),
    on(agentKeyIssued, (state, { data }) => ({ ...state, keys: { ...state.keys, [data.key_id]: data.expires_at } })),
    on(agentKeyRevoked, (state, { data }) => {
      const { [data.key_id]: _, ...keys } = state.keys;
      return { ...state, keys };
    }),
    on(agentDeleted, (state) => ({ ...state, deleted: true, connection: null, givenUpNames: {} })),
    ...namingFolds<AgentState>(),
  ],
});

/** What waits for an agent, to be compared. */
export const waitingOf = (count: number, types: readonly string[]): string => `${count} ${types.join(' ')}`;

/** Length of the other memory keys as JSON, characters; 0 if there are none. */
export const sizeOfFields = (fields: Readonly<Record<string, unknown>>): number =>
  Object.keys(fields).length === 0 ? 0 : JSON.stringify(fields).length;

/** Name keys of `name` that `next` does not have. */
function keysLeft(name: string, next: string): readonly string[] {
  const kept = nameKeys(next);
  return nameKeys(name).filter((key) => !kept.includes(key));
}

function withDetails(state: AgentState, data: EventOf<typeof agentDetailsChanged>['data'], at: number): AgentState {
  const { changes, via, status } = data;
  let { givenUpNames } = state;
  if (changes.name !== undefined && changes.name !== state.name)
    for (const key of keysLeft(state.name, changes.name))
      givenUpNames = giveUpName(givenUpNames, nameKey(SHARED_NAME, key), at);
  if (changes.session_key !== undefined && state.session_key !== null && changes.session_key !== state.session_key)
    givenUpNames = giveUpName(givenUpNames, nameKey(SESSION_KEY, state.session_key), at);
  return {
    ...state,
    name: changes.name ?? state.name,
    role: changes.role ?? state.role,
    session_key: changes.session_key === undefined ? state.session_key : changes.session_key,
    runtime_type: changes.runtime_type === undefined ? state.runtime_type : changes.runtime_type,
    configVersion: state.configVersion + (changes.config === undefined ? 0 : 1),
    soulLength: changes.soul_content === undefined ? state.soulLength : (changes.soul_content?.length ?? 0),
    aliveAt: via === 'name' && status !== null ? at : state.aliveAt,
    waiting: changes.last_activity === undefined ? state.waiting : null,
    givenUpNames,
  };
}

/** The config of an agent, for the few commands that merge it. `version` is the `AgentState.configVersion`. */
export const agentConfigDecider = defineDecider<{
  readonly version: number;
  readonly config: Readonly<Record<string, unknown>>;
}>({
  kind: 'agent config',
  snapshotVersion: 1,
  initial: { version: 0, config: {} },
  sizeOf: ({ config }) => JSON.stringify(config).length,
  folds: [
    on(agentRegistered, (_, { data }) => ({ version: 1, config: data.config })),
    on(agentDetailsChanged, (state, { data: { changes } }) =>
      changes.config === undefined ? state : { version: state.version + 1, config: changes.config },
    ),
  ],
});

/** Kind of the session keys of agents (`names.ts`). */
export const SESSION_KEY = 'session_key';

/** Whether an agent holds a name, by `held` while it exists. */
export const holding =
  (held: (state: AgentState, name: string) => boolean): NameKind<AgentState>['holds'] =>
  (state, name) => {
    if (state.deleted) return 'never';
    if (state.registered) return held(state, name) ? 'yes' : 'not yet';
    // A stream whose first claim was voided can never become an agent (`decideRegister`).
    return Object.keys(state.givenUpNames).length > 0 ? 'never' : 'not yet';
  };

/** The agent of a state. @throws AppError 404 when it does not exist, or was deleted */
export function existing(state: AgentState): { readonly agent_id: number; readonly name: string } {
  if (!state.registered || state.deleted) throw notFound('Agent');
  return { agent_id: state.id, name: state.name };
}

/** No event when the agent is already hidden or shown. @throws AppError 404 */
export function decideVisibility(state: AgentState, hidden: boolean): EventDraft[] {
  const agent = existing(state);
  if (state.hidden === hidden) return [];
  return [(hidden ? agentHidden : agentShown).draft(agent)];
}

type Changes = EventOf<typeof agentDetailsChanged>['data']['changes'];

/** Fields to set; absent means unchanged. */
export interface AgentUpdate extends Changes {
  readonly status?: string;
}

export interface UpdateMode {
  /** `name`: the agent speaks for itself, a status is a sign of life; `id`: an operator; `sync`: the gateway's configuration. */
  readonly via: 'name' | 'id' | 'sync';
  /** The caller has the agent's own key: name and role must not change. */
  readonly byItself?: boolean;
  readonly write_to_gateway?: boolean;
  /** With `id`: the config on which the update is based, for the frame if the update sets none. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/** Fields whose values are in the state. */
const KNOWN = { name: true, role: true, session_key: true, runtime_type: true } as const;

/** The coordinator receives messages meant for it, so no agent may make itself or a new agent the coordinator. */
export const notCoordinator = (field: string) =>
  forbidden(`${field}: an agent cannot choose the coordinator; leave it out, or ask an operator.`);

/**
 * Sets fields. Values already known to be the same are left out. A change of the status is a separate event.
 *
 * @throws AppError 403 when the agent would change its own name or role, or make itself the coordinator; 404
 */
export function decideUpdate(state: AgentState, update: AgentUpdate, mode: UpdateMode): EventDraft[] {
  const { agent_id, name } = existing(state);
  const { status, ...fields } = update;
  const { via, write_to_gateway = false, config } = mode;
  const changes = Object.fromEntries(
    Object.entries(fields).filter(
      ([field, value]) => value !== undefined && !(field in KNOWN && state[field as keyof typeof KNOWN] === value),
    ),
  ) as Changes;
  const given = (['name', 'role'] as const).find((field) => changes[field] !== undefined);
  if (mode.byItself && given !== undefined)
    throw forbidden(`${given}: an agent cannot change its own ${given}; leave it out, or ask an operator.`);
  if (mode.byItself && changes.session_key?.endsWith(':main')) throw notCoordinator('session_key');
  const changed = status !== undefined && status !== state.status;
  const repeated = status !== undefined && !changed;
  const others = Object.keys(changes).filter((field) => field !== 'last_activity').length > 0;
  // If nothing else changes, the event about the status also records the activity.
  const details = others || (changes.last_activity !== undefined && !changed) || (repeated && via === 'name');
  const drafts: EventDraft[] = [];
  if (changed) {
    drafts.push(
      agentStatusChanged.draft({
        agent_id,
        name,
        from: state.status,
        to: status,
        cause: 'update',
        last_activity: update.last_activity ?? null,
        seen: via === 'name',
        announced: details,
        ...(config && !details && { config }),
      }),
    );
  }
  if (details) {
    drafts.push(
      agentDetailsChanged.draft({
        agent_id,
        name,
        changes,
        via,
        write_to_gateway,
        status: status ?? null,
        ...(config && changes.config === undefined && { config }),
      }),
    );
  }
  return drafts;
}

/** @throws AppError 404 */
export function decideDelete(state: AgentState, removeWorkspace: boolean): EventDraft[] {
  return [agentDeleted.draft({ ...existing(state), role: state.role, remove_workspace: removeWorkspace })];
}
