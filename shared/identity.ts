/** The caller of a request, once its credential has been checked. */
import { forbidden } from './errors.ts';
import type { Actor } from './events/metadata.ts';

export const ROLES = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** viewer < operator < admin */
export const reaches = (role: Role, needed: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(needed);

export interface Identity {
  readonly kind: 'user' | 'global-key' | 'agent-key';
  /** User id; 0 for the global key; minus the key's id for an agent key. */
  readonly id: number;
  readonly username: string;
  readonly displayName: string;
  readonly role: Role;
  readonly tenant: number;
  readonly workspace: number;
  /** The agent that a caller speaks for: the agent of its key, or the one named in the header `x-agent-name`. */
  readonly agentName: string | null;
  /** Set only for agent keys. */
  readonly agentId: number | null;
  /** Whether secrets in records are shown to the caller: to admins, and to no caller in responses about the past. */
  readonly seesSecrets: boolean;
  /** Sessions only: SHA-256 of the session token, hex. */
  readonly session: string | null;
}

export function actorOf(identity: Identity): Actor {
  if (identity.kind === 'user') return { type: 'user', id: identity.id, name: identity.username };
  if (identity.kind === 'agent-key') return { type: 'agent', id: identity.agentId ?? 0, name: identity.username };
  return { type: 'api', id: 0, name: identity.username };
}

/**
 * The author name of a caller's tasks, comments and messages: a username, or the name of an agent. Display names are
 * not part of events; they are looked up where the record is shown.
 */
export const authorOf = ({ kind, username, displayName }: Identity): string =>
  kind === 'user' ? username : displayName || username;

export const ANONYMOUS: Actor = { type: 'anonymous', id: 0, name: 'anonymous' };

/** The parts of the service that act by themselves. No user or agent may have these names. */
export const SYSTEM_ACTORS = ['cli', 'first start', 'oidc', 'proxy', 'scheduler'] as const;
export const systemActor = (name: (typeof SYSTEM_ACTORS)[number]): Actor => ({ type: 'system', id: 0, name });

/**
 * Which tasks of a workspace a caller sees. Every query that shows a task, its comments, its reviews or its branch takes
 * such a view, so none can be called without one. `seesTask` is the rule; `queries/tasks/visibility.ts` has it as SQL.
 */
export interface TaskView {
  readonly workspace: number;
  /** The caller sees only the tasks of this agent. Its id is null for a caller without its key. Null: all tasks. */
  readonly agent: { readonly name: string; readonly id: number | null } | null;
}

/** Fields of a caller that decide which tasks it sees. */
export const TASK_VIEW = ['workspace', 'role', 'agentName', 'agentId'] as const satisfies readonly (keyof Identity)[];
export type Viewer = Pick<Identity, (typeof TASK_VIEW)[number]>;

/** The view of a caller. One that speaks for an agent, and is no admin, is bound to the tasks of that agent. */
export const taskViewOf = ({ workspace, role, agentName, agentId }: Viewer): TaskView => ({
  workspace,
  agent: role === 'admin' || agentName === null ? null : { name: agentName, id: agentId },
});

/** All tasks of a workspace: for the service itself. */
export const allTasks = (workspace: number): TaskView => ({ workspace, agent: null });

/** Whose a task is. */
export interface TaskOwners {
  readonly assignedTo: string | null;
  /** Id of the agent that is the assignee; null: a user, or a name that no agent had when the task was assigned. */
  readonly assigneeId: number | null;
  /** Id of the agent that created it; null: another caller did. */
  readonly creatorAgent: number | null;
}

/**
 * Whether a task is assigned to an agent. By its id where both are known: a later agent of the name is another one, and
 * a renamed agent is the same.
 */
export const isAssignedTo = (
  { assignedTo, assigneeId }: Pick<TaskOwners, 'assignedTo' | 'assigneeId'>,
  { name, id }: NonNullable<TaskView['agent']>,
): boolean => (id === null || assigneeId === null ? assignedTo === name : assigneeId === id);

/** An agent sees the tasks that are assigned to it or that it created. */
export const seesTask = ({ agent }: TaskView, owners: TaskOwners): boolean =>
  agent === null || isAssignedTo(owners, agent) || (agent.id !== null && owners.creatorAgent === agent.id);

/** Fields of a caller that decide whose notifications it reads. */
export const RECIPIENT = [
  'kind',
  'role',
  'agentName',
  'username',
  'id',
  'agentId',
] as const satisfies readonly (keyof Identity)[];

/**
 * The only recipient whose notifications a caller may read and mark: for an agent's key its agent, for a viewer its own
 * username. Undefined: every recipient. What was raised for an earlier owner of the name is not among them.
 */
export function onlyRecipientOf({
  kind,
  role,
  agentName,
  username,
  id,
  agentId,
}: Pick<Identity, (typeof RECIPIENT)[number]>): Recipient | undefined {
  if (role === 'admin') return undefined;
  if (kind === 'agent-key') return agentName === null ? undefined : { name: agentName, owner: `agent:${agentId}` };
  return role === 'viewer' ? { name: username, owner: `user:${id}` } : undefined;
}

/** A recipient of notifications. */
export interface Recipient {
  readonly name: string;
  /** Only those raised while the name was this user's or agent's: `user:7`, `agent:3`. Undefined: all. */
  readonly owner?: string | undefined;
}

/** Fields of a caller that decide what it sees of an agent. */
export const SPEAKER = ['role', 'kind', 'agentId', 'agentName'] as const satisfies readonly (keyof Identity)[];
export type Speaker = Pick<Identity, (typeof SPEAKER)[number]>;

/** Whether this caller may read and change the agent's own data. */
export function speaksFor(identity: Speaker, agent: { readonly id: number; readonly name: string }): boolean {
  if (identity.role === 'admin') return true;
  return identity.kind === 'agent-key'
    ? identity.agentId === agent.id
    : identity.agentName === null || identity.agentName === agent.name;
}

/**
 * Heartbeats and memory belong to the agent: a caller that speaks for an agent may use them only for that agent, unless
 * it is an admin. For an agent's key, the agent's id decides; for a session with `x-agent-name`, that name does, even
 * if the path has an id.
 *
 * @throws AppError 403
 */
export function requireSelf(identity: Speaker, agent: { readonly id: number; readonly name: string }): void {
  if (!speaksFor(identity, agent))
    throw forbidden(`You speak for the agent ${identity.agentName}; only ${agent.name} itself may make this call.`);
}
