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
import { registeredAgent } from '../kit.ts';
import { call, type Reply, startTestService, type TestService } from '../service.ts';
import { testOrigin } from '../world.ts';

export const PASSWORD = 'a long enough password';

export interface AuthWorld extends TestService {
  /** A request; `as` is a cookie, an API key, or nothing. Every one comes from `ip` (behind a trusted proxy). */
  ask(
    method: string,
    path: string,
    options?: {
      readonly as?: string | undefined;
      readonly body?: unknown;
      readonly headers?: Record<string, string>;
      readonly ip?: string;
    },
  ): Promise<Reply>;
  /** Signs in and gives the `Cookie` header. */
  signIn(username: string, password?: string): Promise<string>;
  /** Creates a user without HTTP and its limits. Gives the id. */
  makeUser(user: Partial<NewUser> & { readonly username: string }, password?: string | null): Promise<number>;
  /** A user from before names were compared: with any name. */
  makeOlderUser(username: string): Promise<number>;
  makeAgent(name: string, workspace?: number): Promise<number>;
  /** An agent's key, issued without HTTP. */
  makeKey(agentId: number, scopes: readonly string[], workspace?: number, tenant?: number): Promise<string>;
  /** Audit entries with this action, newest first, as the API gives them. */
  audit(action: string): Promise<Record<string, unknown>[]>;
  /** Raw text of the event log. */
  rawLog(): Promise<string>;
}

/** A different address each time, so that limits per address do not interfere. */
let addresses = 0;
export const freshAddress = (): string => {
  addresses++;
  return `198.51.${100 + Math.floor(addresses / 250)}.${(addresses % 250) + 1}`;
};

export const cookieOf = (reply: Reply): string =>
  reply.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ');

const ANYBODY = {
  email: null,
  avatar_url: null,
  role: 'viewer',
  provider: 'local',
  provider_id: null,
  is_approved: true,
  tenant: 1,
  workspace: 1,
  source: 'cli',
} as const;

const isCookie = (credential: string) => credential.includes('mc-session=');

export async function startAuthWorld(overrides: Record<string, string> = {}, role?: ProcessRole): Promise<AuthWorld> {
  const service = await startTestService({ MC_TRUSTED_PROXIES: '127.0.0.1', ...overrides }, role);
  const { commands, credentials, eventLog } = service.service.core;
  const context = (workspace: number, tenant = 1): CommandContext => ({ origin: { ...testOrigin, tenant, workspace } });
  const ask: AuthWorld['ask'] = (method, path, { as, body, headers = {}, ip } = {}) =>
    call(service, method, path, body, {
      'x-api-key': as !== undefined && !isCookie(as) ? as : '',
      ...(as !== undefined && isCookie(as) && { cookie: as }),
      'x-forwarded-for': ip ?? freshAddress(),
      ...headers,
    });
  return {
    ...service,
    ask,
    async signIn(username, password = PASSWORD) {
      const reply = await ask('POST', '/api/auth/login', { body: { username, password } });
      if (reply.status !== 200) throw new Error(`sign-in of ${username} answered ${reply.status}`);
      return cookieOf(reply);
    },
    makeUser: (user, password = PASSWORD) =>
      createUser(
        commands,
        context(user.workspace ?? 1, user.tenant),
        credentials,
        { display_name: user.username, ...ANYBODY, ...user },
        password,
      ),
    async makeOlderUser(username) {
      const userId = await commands.counters.take('user');
      const credentialId = await credentials.addPassword(userId, PASSWORD);
      await commands.record(userStream(userId), context(1), [
        userCreated.draft({
          display_name: username,
          ...ANYBODY,
          user_id: userId,
          username,
          credential_id: credentialId,
        }),
      ]);
      return userId;
    },
    async makeAgent(name, workspace = 1) {
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
    async makeKey(agentId, scopes, workspace = 1, tenant = 1) {
      const request = { workspace, agent_id: agentId, name: 'test', scopes, expiresAt: null };
      return (await issueAgentKey(commands, context(workspace, tenant), credentials, request, { most: 1_000, now: 0 }))
        .apiKey;
    },
    async audit(action) {
      const reply = await ask('GET', `/api/audit?action=${action}&limit=200`, { as: service.adminKey });
      return reply.body.entries;
    },
    async rawLog() {
      let text = '';
      for await (const events of eventLog.readAll()) text += JSON.stringify(events);
      return text;
    },
  };
}
