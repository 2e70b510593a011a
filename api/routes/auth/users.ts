/** Users of the caller's workspace. */

import { deleteUser, updateUser } from '../../../commands/auth/changes.ts';
import { createUser } from '../../../commands/auth/users.ts';
import { adminsIn, findUser, findUserByName, listUsers, toUserRecord } from '../../../queries/auth/users.ts';
import { newUserBody, userAnswer, userChangesBody, usersAnswer } from '../../../shared/contract/auth/users.ts';
import { idBody, successAnswer } from '../../../shared/contract/common.ts';
import { invalid, notFound } from '../../../shared/errors.ts';
import type { Identity } from '../../../shared/identity.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

/** Users must not lock themselves out; keys have no account of their own. */
const ownId = (identity: Identity): number => (identity.kind === 'user' ? identity.id : 0);

async function answer(services: Services, id: number, status: number) {
  const row = await findUser(services.reads, id);
  if (!row) throw notFound('User');
  return { status, body: { user: toUserRecord(row) } };
}

const list = defineRoute({
  method: 'get',
  path: '/api/auth/users',
  tag: 'Auth',
  summary: 'List the users of the workspace, oldest first',
  access: 'admin',
  responses: { 200: { description: 'Users', schema: usersAnswer } },
  // `all`: a user may be moved here from another workspace, by an event of that one.
  cache: { models: ['users'], scope: 'all' },
  handle: async ({ services, identity }) => ({
    body: { users: await listUsers(services.reads, identity.workspace) },
  }),
});

const create = defineRoute({
  method: 'post',
  path: '/api/auth/users',
  tag: 'Auth',
  summary: 'Create a user',
  description: 'The user belongs to the workspace of the caller. Usernames are unique in the whole deployment.',
  access: 'admin',
  limit: 'users',
  body: newUserBody,
  refuses: [409],
  responses: { 201: { description: 'Created', schema: userAnswer } },
  async handle({ body, services, identity, command }) {
    const { username, password, role, provider } = body;
    const id = await createUser(
      services.commands,
      command,
      services.credentials,
      {
        username,
        displayName: body.display_name?.trim() || username,
        email: body.email?.trim() || null,
        avatarUrl: null,
        role,
        provider,
        providerId: null,
        isApproved: true,
        tenant: identity.tenant,
        workspace: identity.workspace,
        source: 'admin',
      },
      password,
      { isTaken: async (name) => (await findUserByName(services.reads, name)) !== undefined },
    );
    return answer(services, id, 201);
  },
});

const update = defineRoute({
  method: 'put',
  path: '/api/auth/users',
  tag: 'Auth',
  summary: 'Change a user',
  description:
    'A new password and `is_approved: 0` end the sessions of the user. Callers cannot change their own role, and the last enabled admin of a tenant cannot be demoted or disabled.',
  access: 'admin',
  limit: 'users',
  body: userChangesBody,
  refuses: [404, 409],
  responses: { 200: { description: 'Changed', schema: userAnswer } },
  async handle({ body, services, identity, command }) {
    const { id, role, email, avatar_url, is_approved, password } = body;
    const displayName = body.display_name?.trim();
    if (displayName === '') throw invalid('display_name must not be blank.');
    await updateUser(services.commands, command, services.credentials, adminsIn(services.reads), {
      userId: id,
      workspace: identity.workspace,
      callerId: ownId(identity),
      changes: {
        displayName,
        role,
        email: email === undefined ? undefined : email?.trim() || null,
        avatarUrl: avatar_url === undefined ? undefined : avatar_url?.trim() || null,
        isApproved: is_approved === undefined ? undefined : Boolean(is_approved),
      },
      password: password || null,
      by: 'admin',
    });
    return answer(services, id, 200);
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/auth/users',
  tag: 'Auth',
  summary: 'Delete a user',
  description:
    'Ends the sessions of the user and frees the username. Callers cannot delete their own account, and the last enabled admin of a tenant cannot be deleted.',
  access: 'admin',
  limit: 'users',
  body: idBody,
  refuses: [404, 409],
  responses: { 200: { description: 'Deleted', schema: successAnswer } },
  async handle({ body, services, identity, command }) {
    await deleteUser(services.commands, command, services.credentials, adminsIn(services.reads), {
      userId: body.id,
      workspace: identity.workspace,
      callerId: ownId(identity),
    });
    return { body: { success: true } };
  },
});

export const userRoutes: readonly Route[] = [list, create, update, remove];
