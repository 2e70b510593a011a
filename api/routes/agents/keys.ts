/** API keys of one agent. */
import { issueAgentKey, revokeAgentKey } from '../../../commands/agents/keys.ts';
import { findAgent } from '../../../queries/agents/agents.ts';
import { listAgentKeys } from '../../../queries/agents/keys.ts';
import { agentParams } from '../../../shared/contract/agents/agents.ts';
import * as contract from '../../../shared/contract/agents/keys.ts';
import { orNotFound } from '../../../shared/errors.ts';
import { DAY, seconds } from '../../../shared/time.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { requireAgent } from './agents.ts';

const path = '/api/agents/{id}/keys';
const DEFAULT_SCOPES = ['viewer', 'agent:self'];

const list = defineRoute({
  method: 'get',
  path,
  summary: 'List the keys of an agent, newest first',
  access: 'admin',
  rules: { agentKeys: 'never', strict: 'allowed', past: 'all', prompts: 'none' },
  params: agentParams,
  refuses: [404],
  responses: {
    200: { description: 'Descriptions of the keys, without the keys themselves', schema: contract.agentKeysResponse },
  },
  async respond({ params, services, identity }) {
    const { reads, credentials } = services;
    const agent = orNotFound(await findAgent(reads, identity.workspace, params.id), 'Agent');
    const lastUsed =
      reads.past === undefined ? (ids: readonly number[]) => credentials.keysLastUsed('agent', ids) : undefined;
    const keys = await listAgentKeys(reads, identity.workspace, agent.id, lastUsed);
    return { agent: { id: agent.id, name: agent.name }, keys };
  },
});

const issue = defineRoute({
  method: 'post',
  path,
  summary: 'Issue a key',
  description:
    'The key is shown only in this response. Its role follows from its scopes: the highest of admin, operator and viewer. Without an expiry, it is valid until it is revoked or the agent is deleted.',
  access: 'admin',
  rules: { agentKeys: 'never', strict: 'allowed', past: 'none', prompts: 'none' },
  params: agentParams,
  body: contract.newAgentKeyBody,
  bodyOptional: true,
  refuses: [404, 409],
  responses: { 201: { description: 'Issued', schema: contract.newAgentKeyResponse } },
  async respond({ params, body, services, identity, command }) {
    const scopes = body.scopes.length > 0 ? body.scopes : DEFAULT_SCOPES;
    const days = body.expires_in_days;
    const fromDays = days === undefined ? null : seconds(services.now()) + Math.floor(days * DAY);
    const expiresAt = body.expires_at ?? fromDays;
    const { commands, credentials, settings } = services;
    const agent = await requireAgent(services, identity, params.id, { recent: true });
    const request = { workspace: identity.workspace, agent_id: agent.id, name: body.name, scopes, expiresAt };
    const limit = { most: settings.maxAgentKeys, now: seconds(services.now()) };
    const { id, apiKey, prefix, created_at } = await issueAgentKey(commands, command, credentials, request, limit);
    return {
      key: { id, name: body.name, key_prefix: prefix, scopes, expires_at: expiresAt, created_at },
      api_key: apiKey,
    };
  },
});

const revoke = defineRoute({
  method: 'delete',
  path,
  summary: 'Revoke a key',
  access: 'admin',
  rules: { agentKeys: 'never', strict: 'allowed', past: 'none', prompts: 'none' },
  params: agentParams,
  body: contract.revokeAgentKeyBody,
  refuses: [404],
  responses: { 200: { description: 'Revoked', schema: contract.revokedAgentKeyResponse } },
  async respond({ params, body, services, identity, command }) {
    const agent = await requireAgent(services, identity, params.id, { recent: true });
    const revokedAt = await revokeAgentKey(services.commands, command, {
      workspace: identity.workspace,
      agent_id: agent.id,
      keyId: body.key_id,
    });
    return { success: true, key_id: body.key_id, revoked_at: revokedAt };
  },
});

export const agentKeyRoutes: readonly Route[] = [list, issue, revoke];
