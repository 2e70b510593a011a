/** A service with what the auth tests share. */
import { agentStream } from '../../../commands/agents/agents.ts';
import { issueAgentKey } from '../../../commands/agents/keys.ts';
import { claimsFor } from '../../../commands/agents/names.ts';
import { createUser } from '../../../commands/auth/registration.ts';
import type { NewUser } from '../../../commands/auth/users.ts';
import { claimName } from '../../../commands/claims.ts';
import type { CommandContext } from '../../../commands/handler.ts';
import type { ProcessRole } from '../../../infra/config.ts';
import { userCreated, userStream } from '../../../shared/events/auth/users.ts';
import { newUser } from '../ann.ts';
import { registeredAgent } from '../kit.ts';
import { call, type Reply, startTestService } from '../service.ts';
import { testOrigin } from '../world.ts';

export const PASSWORD = 'a long enough password';

export type AuthWorld = Awaited<ReturnType<typeof startAuthWorld>>;

/** A different address each time, so that limits per address do not interfere. */
let addresses = 0;
export const freshAddress = (): string => {
  addresses++;
  return `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`;
};

export const cookieOf = (reply: Reply): string =>
  reply.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ');

interface Asking {
  readonly as?: string | undefined;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly ip?: string;
}

const isCookie = (credential: string) => credential.includes('mc-session=');

export async function startAuthWorld(overrides: Record<string, string> = {}, role?: ProcessRole) {
  const service = await startTestService({ MC_TRUSTED_PROXIES: '127.0.0.1', ...overrides }, role);
  const { commands, credentials, eventLog } = service.service.core;
  const context = (workspace: number, tenant = 1): CommandContext => ({ origin: { ...testOrigin, tenant, workspace } });
  /** A request; `as` is a cookie, an API key, or nothing. Every one comes from `ip` (behind a trusted proxy). */
  const ask = (method: string, path: string, { as, body, headers = {}, ip }: Asking = {}): Promise<Reply> =>
    call(service, method, path, body, {
      'x-api-key': as !== undefined && !isCookie(as) ? as : '',
      ...(as !== undefined && isCookie(as) && { cookie: as }),
      'x-forwarded-for': ip ?? freshAddress(),
      ...headers,
    });
  /** Signs in and gives the `Cookie` header. */
  const signIn = async (username: string, password = PASSWORD): Promise<string> => {
    const reply = await ask('POST', '/api/auth/login', { body: { username, password } });
    if (reply.status !== 200) throw new Error(`sign-in of ${username} answered ${reply.status}`);
    return cookieOf(reply);
  };
  /** Creates a user without HTTP and its limits. Gives the id. */
  const makeUser = (user: Partial<NewUser> & { readonly username: string }, password: string | null = PASSWORD) =>
    createUser(
      commands,
      context(user.workspace ?? 1, user.tenant),
      credentials,
      newUser(user.username, { source: 'cli', ...user }),
      password,
    );
  return {
    ...service,
    ask,
    signIn,
    makeUser,
    /** The same, signed in. Gives the `Cookie` header. */
    async makeSession(user: Parameters<typeof makeUser>[0]): Promise<string> {
      await makeUser(user);
      return signIn(user.username);
    },
    /** A user with a name that an agent may have, as after the removal of the user's workspace. */
    async makeNamesake(username: string): Promise<number> {
      const userId = await commands.counters.take('user');
      const credentialId = await credentials.addPassword(userId, PASSWORD);
      await commands.record(userStream(userId), context(1), [
        userCreated.draft({
          ...newUser(username, { source: 'cli' }),
          user_id: userId,
          credential_id: credentialId,
        }),
      ]);
      return userId;
    },
    async makeAgent(name: string, workspace = 1): Promise<number> {
      const agentId = await commands.counters.take('agent');
      for (const { kind, scope, name: key, shown } of claimsFor(workspace, { name }))
        await claimName(commands, context(workspace), kind, scope, key, agentStream(workspace, agentId), shown);
      await commands.record(agentStream(workspace, agentId), context(workspace), [
        registeredAgent({
          agent_id: agentId,
          name,
        }),
      ]);
      return agentId;
    },
    /** An agent's key, issued without HTTP. */
    async makeKey(agentId: number, scopes: readonly string[], workspace = 1, tenant = 1): Promise<string> {
      const request = { workspace, agent_id: agentId, name: 'test', scopes, expiresAt: null };
      return (await issueAgentKey(commands, context(workspace, tenant), credentials, request, { most: 1_000, now: 0 }))
        .apiKey;
    },
    /** Audit entries with this action, newest first, as the API gives them. */
    async audit(action: string): Promise<Record<string, unknown>[]> {
      const reply = await ask('GET', `/api/audit?action=${action}&limit=200`, { as: service.adminKey });
      return reply.body.entries;
    },
    /** Raw text of the event log. */
    async rawLog(): Promise<string> {
      let text = '';
      for await (const events of eventLog.readAll()) text += JSON.stringify(events);
      return text;
    },
  };
}
