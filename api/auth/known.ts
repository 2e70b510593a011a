/**
 * What a credential stands for: pure rules over records that were looked up elsewhere. The same rules admit a request
 * (`identify.ts`) and keep a stream open (`recheck.ts`).
 */

import type { LiveKeyRow } from '../../queries/agents/keys.ts';
import type { GlobalKeyRow } from '../../queries/auth/global-key.ts';
import type { UserRow } from '../../queries/auth/users.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../shared/events/metadata.ts';
import type { Identity, Role } from '../../shared/identity.ts';
import type { KeyRecord, SessionRecord } from '../../shared/ports/credentials.ts';

/** The credential that admitted a request; secrets as SHA-256, hex. */
export type HeldCredential =
  | { readonly kind: 'session' | 'key'; readonly hash: string }
  | { readonly kind: 'proxy'; readonly username: string }
  /** An access token of the OpenID Connect provider. @see `expiresAt` Unix seconds */
  | { readonly kind: 'token'; readonly username: string; readonly expiresAt: number };

export interface Known {
  readonly identity: Identity;
  /** Unix seconds; Infinity when it never expires. */
  readonly expiresAt: number;
  /** For keys: the record whose last use is noted. */
  readonly key: KeyRecord | undefined;
  /** For agent keys: whether the key may be used under any agent's name. */
  readonly anyAgent: boolean;
}

const GLOBAL_IDENTITY: Identity = {
  kind: 'global-key',
  id: 0,
  username: 'api',
  displayName: 'API Access',
  role: 'admin',
  seesSecrets: true,
  tenant: DEFAULT_TENANT,
  workspace: DEFAULT_WORKSPACE,
  agentName: null,
  agentId: null,
  session: null,
};

/** The fields of a user from which an identity is derived. */
type UserFields = Pick<
  UserRow,
  'id' | 'username' | 'display_name' | 'role' | 'is_approved' | 'tenant_id' | 'workspace_id'
>;

const userIdentity = (user: UserFields, session: string | null): Identity => ({
  kind: 'user',
  id: user.id,
  username: user.username,
  displayName: user.display_name ?? user.username,
  role: user.role as Role,
  seesSecrets: user.role === 'admin',
  tenant: user.tenant_id,
  workspace: user.workspace_id,
  agentName: null,
  agentId: null,
  session,
});

/** Scopes that begin with `agent:` do not affect the role. */
export function roleOf(scopes: readonly string[]): Role {
  if (scopes.includes('admin')) return 'admin';
  return scopes.includes('operator') ? 'operator' : 'viewer';
}

export function knownSession(
  hash: string,
  session: SessionRecord | undefined,
  user: UserRow | undefined,
): Known | undefined {
  if (!session || !user?.is_approved || user.session_mark !== session.credential) return undefined;
  return { identity: userIdentity(user, hash), expiresAt: session.expiresAt, key: undefined, anyAgent: false };
}

/** A user named by a proxy or an access token. */
export function knownUser(user: UserFields | undefined, expiresAt = Number.POSITIVE_INFINITY): Known | undefined {
  if (!user?.is_approved) return undefined;
  return {
    identity: userIdentity(user, null),
    expiresAt,
    key: undefined,
    anyAgent: false,
  };
}

/** @param inForce the current global key */
export function knownGlobalKey(key: KeyRecord, inForce: GlobalKeyRow | undefined): Known | undefined {
  if (inForce?.key_id !== key.keyId) return undefined;
  return { identity: GLOBAL_IDENTITY, expiresAt: Number.POSITIVE_INFINITY, key, anyAgent: false };
}

export function knownAgentKey(key: KeyRecord, row: LiveKeyRow | undefined): Known | undefined {
  if (!row) return undefined;
  const scopes = row.scopes as readonly string[];
  return {
    identity: {
      kind: 'agent-key',
      id: -row.id,
      username: `agent:${row.agent_name}`,
      displayName: row.agent_name,
      role: roleOf(scopes),
      seesSecrets: roleOf(scopes) === 'admin',
      tenant: row.tenant_id,
      workspace: row.workspace_id,
      agentName: row.agent_name,
      agentId: row.agent_id,
      session: null,
    },
    expiresAt: row.expires_at ?? Number.POSITIVE_INFINITY,
    key,
    anyAgent: scopes.includes('admin'),
  };
}
