/** The last step of every successful sign-in: a session, its event, the response. */

import { recordSignIn } from '../../commands/auth/sign-in.ts';
import type { asUser } from '../../commands/auth/users.ts';
import type { CommandContext } from '../../commands/handler.ts';
import { findUser, toUserRecord, type UserRow } from '../../queries/auth/users.ts';
import type { CallerRecord } from '../../shared/contract/auth/profile.ts';
import type { UserRecord } from '../../shared/contract/auth/users.ts';
import type { Identity } from '../../shared/identity.ts';
import type { Exchange } from '../http/exchange.ts';
import { createLimiter, type Limiter } from '../http/limits.ts';
import type { Answer } from '../http/route.ts';
import type { Services } from '../services.ts';
import { recordLimit } from './incidents.ts';
import { beginSession, hashToken } from './sessions.ts';

/** What commands need to know about a user who is not yet the request's caller. */
export const asKnown = (row: UserRow): Parameters<typeof asUser>[1] => ({
  id: row.id,
  username: row.username,
  tenant: row.tenant_id,
  workspace: row.workspace_id,
});

/** Starts a session for `user` and responds with the user and the cookie. */
export async function signIn(
  services: Services,
  exchange: Exchange,
  command: CommandContext,
  user: UserRow,
  method: 'password' | 'google',
): Promise<Answer<{ user: UserRecord }>> {
  const { token, cookie } = await beginSession(services, exchange, user);
  try {
    await recordSignIn(services.commands, command, asKnown(user), method);
  } catch (error) {
    // No session may exist without its audit entry.
    await services.credentials.removeSession(hashToken(token));
    throw error;
  }
  const row = (await findUser(services.reads, user.id)) ?? user;
  return { body: { user: toUserRecord(row) }, headers: { 'Set-Cookie': cookie } };
}

/** The record that describes a caller using an API key. */
export function keyCaller(identity: Identity): CallerRecord {
  const { id, username, displayName, role, workspace, tenant } = identity;
  return {
    id,
    username,
    display_name: displayName,
    role,
    provider: 'local',
    email: null,
    avatar_url: null,
    workspace_id: workspace,
    tenant_id: tenant,
  };
}

const limiters = new WeakMap<Services, Limiter>();

/** The limit for password changes. The route cannot declare it, because only some of its calls change a password. @throws AppError 429 */
export async function checkPasswordLimit(services: Services, exchange: Exchange): Promise<void> {
  let limiter = limiters.get(services);
  if (!limiter) {
    limiter = createLimiter(services, (name, refused) => recordLimit(services, name, refused));
    limiters.set(services, limiter);
  }
  await limiter.check('password', exchange);
}
