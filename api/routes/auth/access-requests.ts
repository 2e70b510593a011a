/** Access requests of people who signed in with Google. They belong to the deployment, not to a workspace. */
import { z } from 'zod';
import { approveAccess, rejectAccess } from '../../../commands/auth/access-requests.ts';
import { listAccessRequests } from '../../../queries/auth/access-requests.ts';
import { approvalReads, userAfter } from '../../../queries/auth/users.ts';
import { latest } from '../../../queries/records.ts';
import * as contract from '../../../shared/contract/auth/access-requests.ts';
import { filterParam, limitParam, offsetParam } from '../../../shared/contract/common.ts';
import { userStream } from '../../../shared/events/auth/users.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';

const list = defineCachedRoute({
  method: 'get',
  path: '/api/auth/access-requests',
  summary: 'List access requests, pending ones first',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'all', prompts: 'none' },
  scope: 'deployment',
  query: z.object({
    status: filterParam.describe('pending, approved or rejected; default: all'),
    limit: limitParam(200),
    offset: offsetParam,
  }),
  responses: { 200: { description: 'Access requests', schema: contract.accessRequestsResponse } },
  cache: { models: ['users'], scope: 'all', caller: [] },
  async respond({ query, services }) {
    const { limit, offset } = query;
    const status = query.status === 'all' ? undefined : query.status;
    return { requests: await listAccessRequests(services.reads, { status, limit, offset }) };
  },
});

const decide = defineRoute({
  method: 'post',
  path: '/api/auth/access-requests',
  summary: 'Approve or reject an access request',
  description:
    'Approving creates the user in the default workspace, or lets an existing user with this e-mail address sign in with Google.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  limit: 'access-requests',
  body: contract.accessDecisionBody,
  refuses: [404, 409],
  responses: { 200: { description: 'Decided', schema: contract.accessDecisionResponse } },
  async respond({ body, services, identity, command, context }) {
    const { commands, credentials } = services;
    const reads = services.reads.at({ since: context.startedAt });
    const id = (body.id ?? body.request_id) as number;
    const note = body.note ?? null;
    if (body.action === 'reject') {
      await rejectAccess(commands, command, { id, note });
      return { success: true, ok: true };
    }
    const userId = await approveAccess(commands, command, credentials, approvalReads(reads), {
      id,
      role: body.role,
      note,
      callerId: identity.kind === 'user' ? identity.id : 0,
    });
    const user = await userAfter(services.records, userId, latest(userStream(userId)));
    return { success: true, ok: true, user };
  },
});

export const accessRequestRoutes: readonly Route[] = [list, decide];
