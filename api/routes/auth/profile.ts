/** The caller's own profile. */
import { updateProfile } from '../../../commands/auth/profile.ts';
import { findUser, toUserRecord } from '../../../queries/auth/users.ts';
import * as contract from '../../../shared/contract/auth/profile.ts';
import { forbidden, invalid, notFound, unauthenticated } from '../../../shared/errors.ts';
import type { Identity } from '../../../shared/identity.ts';
import { sessionHeaders, sessionParts } from '../../auth/sessions.ts';
import { defineRoute, type Route } from '../../http/route.ts';

/** The caller record of an API key. */
function keyCaller(identity: Identity): contract.CallerRecord {
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

const me = defineRoute({
  method: 'get',
  path: '/api/auth/me',
  summary: 'The caller',
  mcp: { tool: 'who_am_i' },
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  refuses: [404],
  responses: { 200: { description: 'The caller', schema: contract.callerResponse } },
  async respond({ services, identity }) {
    const { reads } = services;
    if (identity.kind !== 'user') {
      if (reads.past !== undefined) throw invalid('as_of: keys have no profile that is kept. Leave as_of out.');
      return { user: keyCaller(identity) };
    }
    const row = await findUser(reads, identity.id);
    if (!row && reads.past !== undefined) throw notFound('User');
    if (!row) throw unauthenticated('This user was deleted a moment ago.');
    return { user: toUserRecord(row) };
  },
});

const updateMe = defineRoute({
  method: 'patch',
  path: '/api/auth/me',
  summary: 'Change the caller’s password or display name',
  description:
    'A new password needs the current one. It ends every session of the user and starts a new one, whose cookie is in the response. API keys have no profile: 403.',
  access: 'any',
  rules: { agentKeys: 'never', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'none',
  body: contract.profileBody,
  refuses: [403, 404, 429],
  responses: { 200: { description: 'Changed', schema: contract.profileResponse } },
  async handle({ body, services, identity, context, command, checkLimit }) {
    if (identity.kind !== 'user') throw forbidden('An API key has no profile to change; sign in as a user.');
    const { current_password: current, new_password: next } = body;
    if (next === undefined && body.display_name === undefined) {
      throw invalid('Nothing to change: send new_password with current_password, or display_name.');
    }
    if (next !== undefined && (current === undefined || current === '')) {
      throw invalid('current_password is needed to set a new password.');
    }
    if (next !== undefined && next.length < contract.MIN_OWN_PASSWORD) {
      throw invalid(`new_password must have at least ${contract.MIN_OWN_PASSWORD} characters.`);
    }
    const displayName = body.display_name?.trim();
    if (displayName === '') throw invalid('display_name must not be blank.');
    if (next !== undefined) await checkLimit('password');
    const { user, token } = await updateProfile(sessionParts(services), command, {
      user_id: identity.id,
      display_name: displayName,
      password: next === undefined || current === undefined ? undefined : { current, next },
    });
    return { body: { success: true, user: user.record }, headers: sessionHeaders(services, context, token) };
  },
});

export const profileRoutes: readonly Route[] = [me, updateMe];
