/** Approval of commands that agents want to run: pending requests at the primary gateway, decisions, allow-list. */
import { changeAllowlist, decideApproval, waitingApprovals } from '../../../commands/admin/exec-approvals.ts';
import { allowlist } from '../../../queries/admin/exec-approvals.ts';
import * as contract from '../../../shared/contract/admin/exec-approvals.ts';
import { errorSchema, jsonObject } from '../../../shared/contract/common.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const list = defineRoute({
  method: 'get',
  path: '/api/exec-approvals',
  noPast: (query) => (query.action === 'allowlist' ? undefined : 'what waits is asked for at the gateway'),
  summary: 'List commands that wait for an approval, or patterns of those that need none',
  access: 'operator',
  rules: { agentKeys: 'never', strict: 'refused', past: 'partly', prompts: 'none' },
  scope: 'deployment',
  query: contract.execApprovalsQuery,
  responses: { 200: { description: 'What waits, or the patterns', schema: contract.execApprovalsResponse } },
  async respond({ query, services }) {
    if (query.action === 'allowlist') return allowlist(services.reads);
    return { approvals: [...(await waitingApprovals(services.commands, services.gateways))] };
  },
});

const decide = defineRoute({
  method: 'post',
  path: '/api/exec-approvals',
  summary: 'Approve or deny a command',
  description:
    'The decision is recorded, then sent to the primary gateway, whose response is recorded and passed on. The audit trail has `exec_approval_decided` and, with the id of that entry as `decision_id`, `exec_approval_answered`: without the second entry, the process ended before the gateway responded.',
  access: 'operator',
  rules: { agentKeys: 'never', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  limit: 'exec-approvals',
  body: contract.execDecisionBody,
  refuses: [404, 422],
  responses: {
    200: { description: 'Response of the gateway', schema: jsonObject },
    502: { description: 'There is no primary gateway, or it cannot be reached', schema: errorSchema },
    504: { description: 'The gateway did not respond in time', schema: errorSchema },
  },
  respond: ({ body, services, command }) => decideApproval(services.commands, command, services.gateways, body),
});

const allow = defineRoute({
  method: 'put',
  path: '/api/exec-approvals',
  summary: 'Replace the patterns of commands that agents may run without asking',
  access: 'operator',
  rules: { agentKeys: 'never', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  limit: 'exec-approvals',
  body: contract.allowlistBody,
  refuses: [409],
  responses: { 200: { description: 'Stored', schema: contract.allowlistResponse } },
  async respond({ body, services, command }) {
    const agents = Object.fromEntries(
      Object.entries(body.agents).map(([agent, patterns]) => [agent, patterns.map(({ pattern }) => pattern)]),
    );
    return { ok: true, hash: await changeAllowlist(services.commands, command, agents, body.hash) };
  },
});

export const execApprovalRoutes: readonly Route[] = [list, decide, allow];
