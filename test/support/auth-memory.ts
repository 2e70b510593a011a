/** Credentials and users in memory, beside a log in memory, for tests of the commands of sign-in and users. */

import { createUser } from '../../commands/auth/registration.ts';
import type { SessionParts } from '../../commands/auth/sessions.ts';
import { isAdminOf, type NewUser, userDecider } from '../../commands/auth/users.ts';
import type { CommandContext } from '../../commands/handler.ts';
import type { FoundUser } from '../../queries/auth/users.ts';
import type { UserRecord } from '../../shared/contract/auth/users.ts';
import { notFound } from '../../shared/errors.ts';
import { userCreated, userStream } from '../../shared/events/auth/users.ts';
import type { Credentials, KeyRecord, SessionRecord } from '../../shared/ports/credentials.ts';
import { ann } from './ann.ts';
import { type MemoryWorld, memoryWorld } from './memory-world.ts';
import { testOrigin } from './world.ts';

type Session = SessionRecord & {
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly createdAt: number;
};

/** A credential store that can be looked into. It hashes nothing. */
export function memoryCredentials() {
  const passwords = new Map<string, { readonly user_id: number; readonly password: string }>();
  const sessions: { readonly token: string; readonly session: Session }[] = [];
  const removed: string[] = [];
  const keys = new Map<string, KeyRecord>();
  const unsupported = () => {
    throw new Error('the credentials in memory cannot do that');
  };
  let ids = 0;
  const store: Credentials = {
    async addPassword(userId, password) {
      const id = `00000000-0000-4000-8000-${String(++ids).padStart(12, '0')}`;
      passwords.set(id, { user_id: userId, password });
      return id;
    },
    verifyPassword: async (id, password) => id !== null && passwords.get(id)?.password === password,
    async removePasswords(userId, except) {
      for (const [id, one] of passwords) if (one.user_id === userId && id !== except) passwords.delete(id);
    },
    async addSession(token, session) {
      sessions.push({ token, session });
    },
    findSession: unsupported,
    findSessions: unsupported,
    async removeSession(hash) {
      removed.push(hash);
    },
    async removeSessions(userId) {
      const kept = sessions.filter(({ session }) => session.userId !== userId);
      sessions.splice(0, sessions.length, ...kept);
    },
    async addKey(key, record) {
      if (!keys.has(key)) keys.set(key, record);
    },
    findKey: async (key) => keys.get(key),
    findKeys: unsupported,
    async removeKey(record) {
      for (const [key, one] of keys) if (one.kind === record.kind && one.keyId === record.keyId) keys.delete(key);
    },
    keyUsed: () => undefined,
    keysLastUsed: async () => new Map(),
  };
  return {
    store,
    /** Passwords by the id of their credential. */
    passwords: () => new Map([...passwords].map(([id, { password }]) => [id, password])),
    sessions: () => sessions,
    /** Hashes of the tokens whose sessions were removed one by one. */
    removed: () => removed,
    keys: () => keys,
  };
}

/** Unix milliseconds: the time of the sessions. */
export const SESSIONS_NOW = 1_700_000_000_500;

/** Commands, credentials and users on one log in memory. */
export function authMemory(world: MemoryWorld = memoryWorld()) {
  const commands = world.process();
  const credentials = memoryCredentials();
  const userIds = () =>
    world
      .written()
      .filter(({ type }) => type === userCreated.type)
      .map(({ data }) => data.user_id as number);
  async function find(id: number): Promise<FoundUser | undefined> {
    const { state } = await world.process().load(userDecider, userStream(id));
    if (!state.exists) return undefined;
    const { username, tenant, workspace, provider, is_approved, credential_id, display_name } = state;
    const changes = world.written().filter(({ stream }) => stream === userStream(id)).length;
    const record = { id, username, display_name } as UserRecord;
    const sessionMark = `${credential_id ?? provider}.${changes}`;
    return { id, username, tenant, workspace, provider, is_approved, credential_id, sessionMark, record };
  }
  async function firstWith(fits: (user: FoundUser, providerId: string | null) => boolean) {
    for (const id of userIds()) {
      const user = await find(id);
      const { state } = await world.process().load(userDecider, userStream(id));
      if (user && fits(user, state.provider_id)) return user;
    }
    return undefined;
  }
  /** The access request that the read model would give. */
  const known: { request: number | undefined } = { request: undefined };
  const parts: SessionParts = {
    commands,
    credentials: credentials.store,
    now: () => SESSIONS_NOW,
    users: {
      find,
      async after(id) {
        const user = await find(id);
        if (!user) throw notFound('User');
        return user;
      },
      findByName: (username) => firstWith((user) => user.username === username),
      findByGoogleAccount: (sub) => firstWith((user, providerId) => user.provider === 'google' && providerId === sub),
      findByOidcAccount: (account) =>
        firstWith((user, providerId) => user.provider === 'oidc' && providerId === account),
      adminsOf: async (tenant) => {
        const admins: number[] = [];
        for (const id of userIds()) {
          const { state } = await world.process().load(userDecider, userStream(id));
          if (isAdminOf(state, tenant)) admins.push(id);
        }
        return admins;
      },
      placeOf: async (slug) => (slug === 'acme' ? { tenant: 2, workspace: 7 } : undefined),
      findAccessRequest: async () => known.request,
      wasSetUp: async () => userIds().length > 0,
    },
  };
  return {
    world,
    commands,
    credentials,
    parts,
    known,
    context: (): CommandContext => ({ origin: testOrigin }),
    /** Creates a user like Ann. Gives the id. */
    make: (user: Partial<NewUser> = {}, password: string | null = null): Promise<number> =>
      createUser(
        commands,
        { origin: testOrigin },
        credentials.store,
        { ...ann, ...(user.username !== undefined && { display_name: null }), ...user },
        password,
      ),
    stateOf: async (id: number) => (await world.process().load(userDecider, userStream(id))).state,
    /** Events of a type, in order. */
    events: (type: string) => world.written().filter((event) => event.type === type),
  };
}
