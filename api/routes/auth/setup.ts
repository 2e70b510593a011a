/** First-run setup: the first visitor to a deployment without users becomes its admin. */
import { setUp } from '../../../commands/auth/setup.ts';
import { wasSetUp } from '../../../queries/auth/users.ts';
import { setupBody, setupState } from '../../../shared/contract/auth/setup.ts';
import { userResponse } from '../../../shared/contract/auth/users.ts';
import { sessionHeaders, sessionParts } from '../../auth/sessions.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const state = defineRoute({
  method: 'get',
  path: '/api/setup',
  summary: 'Check whether the first admin still has to be created',
  access: 'public',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  knownHost: true,
  responses: { 200: { description: 'True until the first user is created', schema: setupState } },
  respond: async ({ services }) => ({ needsSetup: !(await wasSetUp(services.reads)) }),
});

const create = defineRoute({
  method: 'post',
  path: '/api/setup',
  summary: 'Create the first admin',
  description: 'Works only while the deployment has never had a user. Signs the new admin in.',
  access: 'public',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  knownHost: true,
  limit: 'login',
  body: setupBody,
  refuses: [403, 409],
  responses: { 200: { description: 'Created and signed in', schema: userResponse } },
  async handle({ body: { username, password, displayName }, services, context, command }) {
    const admin = { username, password, display_name: displayName?.trim() };
    const { user, token } = await setUp(sessionParts(services), command, admin);
    return { body: { user: user.record }, headers: sessionHeaders(services, context, token) };
  },
});

export const setupRoutes: readonly Route[] = [state, create];
