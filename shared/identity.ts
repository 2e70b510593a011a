/** Who a request comes from, once its credential has been checked. */
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
  /** Sessions only: SHA-256 of the session token, hex. */
  readonly session: string | null;
}

export function actorOf(identity: Identity): Actor {
  if (identity.kind === 'user') return { type: 'user', id: identity.id, name: identity.username };
  if (identity.kind === 'agent-key') return { type: 'agent', id: identity.agentId ?? 0, name: identity.username };
  return { type: 'api', id: 0, name: identity.username };
}

export const ANONYMOUS: Actor = { type: 'anonymous', id: 0, name: 'anonymous' };

/** The parts of the service that act by themselves. Nobody else may have these names. */
export const SYSTEM_ACTORS = ['cli', 'first start', 'proxy', 'scheduler'] as const;
export const systemActor = (name: (typeof SYSTEM_ACTORS)[number]): Actor => ({ type: 'system', id: 0, name });
