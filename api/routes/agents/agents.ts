/** Agents: list, create, change, delete, hide; also which agent a path refers to, and what a caller may see of it. */
import type { z } from 'zod';
import { type AgentUpdate, agentDecider, agentStream, decideVisibility } from '../../../commands/agents/agents.ts';
import { deleteAgent, updateById, updateByName } from '../../../commands/agents/changes.ts';
import { agentInLog } from '../../../commands/agents/names.ts';
import { followAgent } from '../../../commands/agents/references.ts';
import { createAgent } from '../../../commands/agents/registration.ts';
import type { CommandContext } from '../../../commands/handler.ts';
import { type Room, roomFor } from '../../../commands/limits.ts';
import { hasGatewayConfig } from '../../../queries/admin/gateway-config.ts';
import { agentRecord, countAgents, listAgents, recordAfter } from '../../../queries/agents/agents.ts';
import * as contract from '../../../shared/contract/agents/agents.ts';
import { errorSchema, successResponse } from '../../../shared/contract/common.ts';
import { forbidden, invalid, orNotFound, unlessBehind } from '../../../shared/errors.ts';
import { agentDetailsChanged } from '../../../shared/events/agents/agents.ts';
import { agentRegistered } from '../../../shared/events/agents/registration.ts';
import { firstOf } from '../../../shared/events/define.ts';
import { sent } from '../../../shared/fields.ts';
import { type Identity, SPEAKER, type Speaker, speaksFor } from '../../../shared/identity.ts';
import { masked } from '../../../shared/secrets.ts';
import { inPieces } from '../../../shared/waiting.ts';
import { isBoundKey } from '../../auth/agent-keys.ts';
import type { RequestContext } from '../../http/context.ts';
import { type Call, defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import { limitsOf, type Services } from '../../services.ts';
import { ownersOfSession } from '../sessions.ts';

/**
 * The agent that a write changes.
 *
 * @param options.recent accepts a slightly outdated state, for a command that detects later changes
 * @throws AppError 404 when the caller's workspace has no such agent
 */
export const requireAgent = async (
  { commands }: Services,
  { workspace }: Identity,
  ref: contract.AgentRef,
  options: { readonly recent?: boolean } = {},
) => orNotFound(await agentInLog(commands, workspace, ref, options), 'Agent');

/**
 * With an agent's key, no agent gets the session of another one: it would get what is said to that one, and speak for it.
 *
 * @throws AppError 403
 */
async function refuseForeignSession(
  call: Pick<Call<unknown, unknown, unknown, 'operator'>, 'services' | 'identity' | 'isOfDeployment'>,
  agent: { readonly name: string; readonly session_key: string | null },
  session: string | null | undefined,
): Promise<void> {
  if (!session || session === agent.session_key || !isBoundKey(call.identity)) return;
  const names = [call.identity.agentName, agent.name];
  const owner = (await ownersOfSession(call, session, names))?.find(({ name }) => !names.includes(name));
  if (owner === undefined) return;
  throw forbidden(
    `session_key: this session belongs to the agent ${owner.name}; send the key of a session of ${agent.name}, or ask an operator.`,
  );
}

/** The limit of agents in a workspace. */
export const agentRoom = (services: Services): Room =>
  roomFor(limitsOf(services, countAgents), {
    kind: 'agents',
    most: services.settings.maxAgents,
    added: agentRegistered,
  });

/** An agent's record, limited to what this caller may see. */
export function shownTo<A extends contract.AgentRecord>(
  identity: Speaker & Pick<Identity, 'seesSecrets'>,
  agent: A,
): A {
  return {
    ...agent,
    config: identity.seesSecrets ? agent.config : (masked(agent.config) as contract.AgentRecord['config']),
    working_memory: speaksFor(identity, agent) ? agent.working_memory : '',
  };
}

const SHOWN =
  'Secrets in `config` are shown as 8 dashes, except to admins. A caller that speaks for an agent sees only that agent’s `working_memory`; that of other agents is empty.';

const list = defineCachedRoute({
  method: 'get',
  path: '/api/agents',
  summary: 'List agents, newest first',
  mcp: { tool: 'list_agents' },
  description: SHOWN,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.agentsQuery,
  responses: { 200: { description: 'A page of agents', schema: contract.agentsResponse } },
  cache: { models: ['agents', 'leases', 'tasks'], caller: ['workspace', ...SPEAKER, 'seesSecrets'] },
  async respond({ query, identity, services }) {
    const { agents, ...page } = await listAgents(services.reads, identity.workspace, query);
    return { agents: await inPieces(agents, (agent) => shownTo(identity, agent)), ...page };
  },
});

const create = defineRoute({
  method: 'post',
  path: '/api/agents',
  summary: 'Create an agent',
  access: 'operator',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'screened' },
  body: contract.createAgentBody,
  notForAgents: ({ body }) => (body.write_to_gateway ? 'write_to_gateway' : undefined),
  refuses: [409],
  responses: { 201: { description: 'The new agent', schema: contract.createAgentResponse } },
  async respond(call) {
    const { body, identity, services, command } = call;
    await refuseForeignSession(call, { name: body.name, session_key: null }, body.session_key);
    const options = { write_to_gateway: body.write_to_gateway ?? false, byAgent: isBoundKey(identity) };
    const [taskStats, { id, executed, warning }] = await Promise.all([
      // Tasks may have been assigned to this name before the agent existed. A write does not wait for read models.
      services.taskStats(identity.workspace, body.name),
      createAgent(services.commands, command, agentRoom(services), body, options),
    ]);
    const agent = shownTo(identity, await recordAfter(services.records, undefined, identity.workspace, id, executed));
    return { agent: { ...agent, taskStats }, ...(warning !== undefined && { warning }) };
  },
});

/** An empty text clears the field, like null; `undefined` leaves it unchanged. */
const orNull = (value: string | null | undefined) => (value === '' ? null : value);

const putByName = defineRoute({
  method: 'put',
  path: '/api/agents',
  summary: 'Change an agent by its name',
  description: 'For agents that update themselves: a status counts as a sign of life.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'screened' },
  body: contract.updateByNameBody,
  agents: ({ body }) => ({ name: body.name }),
  refuses: [404, 409],
  responses: { 200: { description: 'Changed', schema: successResponse } },
  async respond(call) {
    const { body, identity, services, command } = call;
    const { name, ...fields } = body;
    const update = updateOf(fields);
    if (Object.keys(update).length === 0) throw invalid(`${NOTHING_TO_CHANGE} besides the name.`);
    const agent = await requireAgent(services, identity, { name }, { recent: true });
    const { id } = agent;
    await refuseForeignSession(call, agent, body.session_key);
    await updateByName(services.commands, command, { id, name }, update, isBoundKey(identity));
    return { success: true };
  },
});

/** The fields to set, of those that were sent. */
const updateOf = (fields: AgentUpdate): AgentUpdate =>
  sent({ ...fields, session_key: orNull(fields.session_key), runtime_type: orNull(fields.runtime_type) });

const NOTHING_TO_CHANGE = 'There is nothing to change: send at least one field';

const one = defineCachedRoute({
  method: 'get',
  path: '/api/agents/{id}',
  summary: 'Get one agent',
  mcp: { tool: 'get_agent', resource: 'agent://{id}' },
  description: SHOWN,
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: contract.agentParams,
  refuses: [404],
  responses: { 200: { description: 'The agent', schema: contract.agentResponse } },
  cache: { models: ['agents', 'leases'], caller: ['workspace', ...SPEAKER, 'seesSecrets'] },
  async respond({ params, identity, services }) {
    const agent = orNotFound(await agentRecord(services.reads, identity.workspace, params.id), 'Agent');
    return { agent: shownTo(identity, agent) };
  },
});

/** Whether a change may be written to the gateway's document, if there is one. */
const writesToGateway = ({
  write_to_gateway: asked,
  gateway_config: given,
}: z.infer<typeof contract.updateByIdBody>): boolean => asked ?? given !== undefined;

const putById = defineRoute({
  method: 'put',
  path: '/api/agents/{id}',
  summary: 'Change an agent',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'screened' },
  params: contract.agentParams,
  body: contract.updateByIdBody,
  agents: ({ params }) => params.id,
  notForAgents: ({ body }) => (writesToGateway(body) ? 'write_to_gateway' : undefined),
  refuses: [404, 409],
  responses: {
    200: { description: 'The agent as it is now', schema: contract.updateByIdResponse },
    502: { description: 'The gateway configuration could not be written; nothing was changed', schema: errorSchema },
  },
  async respond(call) {
    const { params, body, identity, services, command, context } = call;
    const { write_to_gateway, ...fields } = body;
    const { gateway_config: gatewayConfig, ...details } = fields;
    if (Object.keys(sent(fields)).length === 0) throw invalid(`${NOTHING_TO_CHANGE}.`);
    const present = await requireAgent(services, identity, params.id, { recent: true });
    const { id } = present;
    await refuseForeignSession(call, present, body.session_key);
    const change = {
      update: updateOf(details),
      gatewayConfig,
      fields: Object.keys(sent(fields)),
      write_to_gateway,
      byItself: isBoundKey(identity),
    };
    const isStored = () => hasGatewayConfig(services.reads, identity.workspace);
    const executed = await updateById(services.commands, command, id, change, isStored);
    if (firstOf(executed.events, agentDetailsChanged)?.data.changes.name !== undefined)
      await follow(services, command, context, id);
    const agent = shownTo(
      identity,
      await recordAfter(services.records, services.lastBeatOf, identity.workspace, id, executed),
    );
    return { success: true, agent };
  },
});

/** Updates what refers to an agent that was renamed or deleted. If that takes too long, a schedule does the rest. */
const follow = ({ commands, reads }: Services, command: CommandContext, { startedAt }: RequestContext, id: number) =>
  unlessBehind(followAgent({ commands, reads: reads.at({ since: startedAt }) }, command, id));

const remove = defineRoute({
  method: 'delete',
  path: '/api/agents/{id}',
  summary: 'Delete an agent',
  description:
    'Its keys stop working and its connections are closed. Its tasks that wait or are in progress return to the shared queue; recurring tasks and scheduled jobs for it are paused, and the admins are notified. It leaves its projects. Other tasks, messages and activities are kept. A later agent of the name gets none of them.',
  access: 'admin',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  params: contract.agentParams,
  agents: ({ params }) => params.id,
  body: contract.deleteAgentBody,
  bodyOptional: true,
  refuses: [404],
  responses: { 200: { description: 'Deleted', schema: contract.deleteAgentResponse } },
  async respond({ params, body, identity, services, command, context }) {
    const { id } = await requireAgent(services, identity, params.id, { recent: true });
    const remove_workspace = body.remove_workspace ?? false;
    const { name, warning } = await deleteAgent(services, command, id, remove_workspace);
    await follow(services, command, context, id);
    return { success: true, deleted: name, remove_workspace, ...(warning !== undefined && { warning }) };
  },
});

const visibility = (method: 'post' | 'delete', hidden: boolean) =>
  defineRoute({
    method,
    path: '/api/agents/{id}/hide',
    summary: hidden ? 'Hide an agent from the default list' : 'Show a hidden agent again',
    access: 'operator',
    rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
    params: contract.agentParams,
    agents: ({ params }) => params.id,
    refuses: [404],
    responses: { 200: { description: 'Done', schema: contract.hideResponse } },
    async respond({ params, identity, services, command }) {
      const { id } = await requireAgent(services, identity, params.id, { recent: true });
      await services.commands.execute(agentDecider, agentStream(identity.workspace, id), command, (state) =>
        decideVisibility(state, hidden),
      );
      return { success: true, agent_id: id, hidden };
    },
  });

export const agentRoutes: readonly Route[] = [
  list,
  create,
  putByName,
  one,
  putById,
  remove,
  visibility('post', true),
  visibility('delete', false),
];
