/** Approval of commands that agents want to run: pending requests at the primary gateway, decisions, allow-list. */
import { changeAllowlist, decideApproval, waitingApprovals } from '../../../commands/admin/exec-approvals.ts';
import { allowlist } from '../../../queries/admin/exec-approvals.ts';
import {
  allowlistAnswer,
  allowlistBody,
  execApprovalsAnswer,
  execApprovalsQuery,
  execDecisionBody,
} from '../../../shared/contract/admin/exec-approvals.ts';
import { errorSchema, jsonObject } from '../../../shared/contract/common.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const list = defineRoute({
  method: 'get',
  path: '/api/exec-approvals',
  noPast: (query) => (query.action === 'allowlist' ? undefined : 'what waits is asked for at the gateway'),
  tag: 'Admin',
  summary: 'List commands that wait for an approval, or patterns of those that need none',
  access: 'operator',
  shared: 'exec-approvals',
  scope: 'deployment',
  closedToAgents: true,
  query: execApprovalsQuery,
  responses: { 200: { description: 'What waits, or the patterns', schema: execApprovalsAnswer } },
  async handle({ query, services }) {
    if (query.action === 'allowlist') return { body: await allowlist(services.reads) };
    return { body: { approvals: [...(await waitingApprovals(services.commands, services.gateways))] } };
  },
});

const decide = defineRoute({
  method: 'post',
  path: '/api/exec-approvals',
  tag: 'Admin',
  summary: 'Approve or deny a command',
  description:
    'The decision is recorded, then sent to the primary gateway, whose response is recorded and passed on. The audit trail has `exec_approval_decided` and, with the id of that entry as `decision_id`, `exec_approval_answered`: without the second entry, the process ended before the gateway responded.',
  access: 'operator',
  shared: 'exec-approvals',
  scope: 'deployment',
  closedToAgents: true,
  limit: 'exec-approvals',
  body: execDecisionBody,
  refuses: [404, 422],
  responses: {
    200: { description: 'What the gateway answered', schema: jsonObject },
    502: { description: 'There is no primary gateway, or it cannot be reached', schema: errorSchema },
    504: { description: 'The gateway did not respond in time', schema: errorSchema },
  },
  handle: async ({ body, services, command }) => ({
    body: await decideApproval(services.commands, command, services.gateways, body),
  }),
});

const allow = defineRoute({
  method: 'put',
  path: '/api/exec-approvals',
  tag: 'Admin',
  summary: 'Replace the patterns of commands that agents may run without asking',
  access: 'operator',
  shared: 'exec-approvals',
  scope: 'deployment',
  closedToAgents: true,
  limit: 'exec-approvals',
  body: allowlistBody,
  refuses: [409],
  responses: { 200: { description: 'Stored', schema: allowlistAnswer } },
  async handle({ body, services, command }) {
    const agents = Object.fromEntries(
      Object.entries(body.agents).map(([agent, patterns]) => [agent, patterns.map(({ pattern }) => pattern)]),
    );
    return { body: { ok: true, hash: await changeAllowlist(services.commands, command, agents, body.hash) } };
  },
});

export const execApprovalRoutes: readonly Route[] = [list, decide, allow];
