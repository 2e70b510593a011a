/** Users of the caller's workspace. */

import { deleteUser, type Transfer, updateUser } from '../../../commands/auth/changes.ts';
import { addUser } from '../../../commands/auth/registration.ts';
import { NEW_USER } from '../../../commands/auth/users.ts';
import { mustBeThere, noSuchWorkspace, type Place } from '../../../commands/workspaces/workspaces.ts';
import { adminsIn, findUser, findUserByName, listUsers, userAfter } from '../../../queries/auth/users.ts';
import { findWorkspace } from '../../../queries/workspaces/workspaces.ts';
import { newUserBody, userChangesBody, userResponse, usersResponse } from '../../../shared/contract/auth/users.ts';
import { idBody, successResponse } from '../../../shared/contract/common.ts';
import { invalid } from '../../../shared/errors.ts';
import type { Identity } from '../../../shared/identity.ts';
import { type Call, defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';

/** Users must not lock themselves out; keys have no user account. */
const ownId = (identity: Identity): number => (identity.kind === 'user' ? identity.id : 0);

type Caller = Pick<
  Call<unknown, unknown, unknown, 'admin'>,
  'services' | 'identity' | 'checkShared' | 'isOfDeployment'
>;

/**
 * The workspace that a body names. Admins of the default tenant may name any workspace, other admins only one of their
 * own tenant, and admins of a strict workspace only that one.
 *
 * @throws AppError 400, 403
 */
async function placeOf(caller: Caller, id: number): Promise<Place> {
  const { services, identity, checkShared, isOfDeployment } = caller;
  const { tenant, workspace } = identity;
  if (id === workspace) return { tenant, workspace };
  await checkShared('users');
  const found = await findWorkspace(services.reads, id);
  if (!found || (found.tenant_id !== tenant && !(await isOfDeployment()))) throw noSuchWorkspace(id);
  const place = { tenant: found.tenant_id, workspace: id };
  await mustBeThere(services.commands, place);
  return place;
}

/** @throws AppError 400, 403 */
async function transferOf(caller: Caller, userId: number, id: number): Promise<Transfer> {
  const { services, identity, checkShared, isOfDeployment } = caller;
  const to = await placeOf(caller, id);
  if ((await findUser(services.reads, userId))?.workspace_id !== identity.workspace) await checkShared('users');
  return { to, reach: (await isOfDeployment()) ? 'all' : { tenant: identity.tenant } };
}

const list = defineCachedRoute({
  method: 'get',
  path: '/api/auth/users',
  summary: 'List the users of the workspace, oldest first',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'all', prompts: 'none' },
  responses: { 200: { description: 'Users', schema: usersResponse } },
  // `all`: an event of another workspace may move a user here.
  cache: { models: ['users'], scope: 'all', caller: ['workspace'] },
  respond: async ({ services, identity }) => ({ users: await listUsers(services.reads, identity.workspace) }),
});

const create = defineRoute({
  method: 'post',
  path: '/api/auth/users',
  summary: 'Create a user',
  description:
    'The user belongs to the workspace of the caller, or to the one that `workspace_id` names. Usernames are unique in the whole deployment. Admins of a strictly isolated workspace can name only their own.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'users',
  body: newUserBody,
  refuses: [409],
  responses: { 201: { description: 'Created', schema: userResponse } },
  async respond(call) {
    const { body, services, identity, command } = call;
    const { username, password, role, provider, workspace_id } = body;
    const place = await placeOf(call, workspace_id ?? identity.workspace);
    const { id, executed } = await addUser(
      services.commands,
      command,
      services.credentials,
      {
        ...NEW_USER,
        username,
        display_name: body.display_name?.trim() || username,
        email: body.email?.trim() || null,
        role,
        provider,
        ...place,
        source: 'admin',
      },
      password,
      { isTaken: async (name) => (await findUserByName(services.reads, name)) !== undefined },
    );
    return { user: await userAfter(services.records, id, executed) };
  },
});

const update = defineRoute({
  method: 'put',
  path: '/api/auth/users',
  summary: 'Change a user',
  description:
    'A new password and `is_approved: 0` end the sessions of the user. `workspace_id` moves the user to another workspace: admins of the whole deployment can move every user, others the users of their own tenant, those of a strictly isolated workspace none. Callers cannot change their own role or workspace, and the last enabled admin of a tenant cannot be demoted, disabled or put into another tenant.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'users',
  body: userChangesBody,
  refuses: [404, 409],
  responses: { 200: { description: 'Changed', schema: userResponse } },
  async respond(call) {
    const { body, services, identity, command, context } = call;
    // As of the arrival of the request: a write does not wait for names that it claims itself.
    const admins = adminsIn(services.reads.at({ since: context.startedAt }));
    const { id, role, email, avatar_url, is_approved, password, workspace_id } = body;
    const displayName = body.display_name?.trim();
    if (displayName === '') throw invalid('display_name must not be blank.');
    const executed = await updateUser(services.commands, command, services.credentials, admins, {
      user_id: id,
      workspace: identity.workspace,
      transfer: workspace_id === undefined ? undefined : await transferOf(call, id, workspace_id),
      callerId: ownId(identity),
      changes: {
        display_name: displayName,
        role,
        email: email === undefined ? undefined : email?.trim() || null,
        avatar_url: avatar_url === undefined ? undefined : avatar_url?.trim() || null,
        is_approved: is_approved === undefined ? undefined : Boolean(is_approved),
      },
      password: password || null,
      by: 'admin',
    });
    return { user: await userAfter(services.records, id, executed) };
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/auth/users',
  summary: 'Delete a user',
  description:
    'Ends the sessions of the user and frees the username. Callers cannot delete their own account, and the last enabled admin of a tenant cannot be deleted.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'users',
  body: idBody,
  refuses: [404, 409],
  responses: { 200: { description: 'Deleted', schema: successResponse } },
  async respond({ body, services, identity, command }) {
    await deleteUser(services.commands, command, services.credentials, adminsIn(services.reads), {
      user_id: body.id,
      reach: identity.workspace,
      callerId: ownId(identity),
    });
    return { success: true };
  },
});

export const userRoutes: readonly Route[] = [list, create, update, remove];
