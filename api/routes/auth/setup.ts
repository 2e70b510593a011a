/** The first run: whoever comes first to a deployment without users becomes its admin. */

import { asUser, createUser } from '../../../commands/auth/users.ts';
import { reserveId } from '../../../commands/reserve.ts';
import { wasSetUp } from '../../../queries/auth/setup.ts';
import { findUser } from '../../../queries/auth/users.ts';
import { setupBody, setupState } from '../../../shared/contract/auth/setup.ts';
import { userAnswer } from '../../../shared/contract/auth/users.ts';
import { forbidden, notFound } from '../../../shared/errors.ts';
import { userStream } from '../../../shared/events/auth/users.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../../shared/events/metadata.ts';
import { signIn } from '../../auth/sign-in.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const state = defineRoute({
  method: 'get',
  path: '/api/setup',
  tag: 'Auth',
  summary: 'Whether the first admin is still to be created',
  access: 'public',
  responses: { 200: { description: 'True until the first user is created', schema: setupState } },
  handle: async ({ services }) => ({ body: { needsSetup: !(await wasSetUp(services.reads)) } }),
});

const setUp = defineRoute({
  method: 'post',
  path: '/api/setup',
  tag: 'Auth',
  summary: 'Create the first admin',
  description: 'Works once: when a deployment has had a user, it never works again. Signs the new admin in.',
  access: 'public',
  limit: 'login',
  body: setupBody,
  refuses: [403, 409],
  responses: {
    200: { description: 'Created and signed in', schema: userAnswer },
  },
  async handle({ body, services, exchange, command }) {
    const { commands, credentials, reads } = services;
    if (await wasSetUp(reads)) throw forbidden('This deployment is set up already; sign in instead.');
    const { username, password } = body;
    const place = { tenant: DEFAULT_TENANT, workspace: DEFAULT_WORKSPACE };
    const id = await reserveId(commands, command, 'user', userStream);
    await createUser(
      commands,
      asUser(command, { id, username, ...place }),
      credentials,
      {
        username,
        displayName: body.displayName?.trim() || `${username.charAt(0).toUpperCase()}${username.slice(1)}`,
        email: null,
        avatarUrl: null,
        role: 'admin',
        provider: 'local',
        providerId: null,
        isApproved: true,
        source: 'setup',
        ...place,
      },
      password,
      { first: true, id },
    );
    const user = await findUser(reads, id);
    if (!user) throw notFound('User');
    return signIn(services, exchange, command, user, 'password');
  },
});

export const setupRoutes: readonly Route[] = [state, setUp];
