/** Working memory of agents. */
import { agentDecider, agentStream } from '../../../commands/agents/agents.ts';
import { decideClearMemory, writeMemory as writeMemoryOf } from '../../../commands/agents/memory.ts';
import type { Executed } from '../../../commands/handler.ts';
import { rowsAfter } from '../../../queries/agents/agents.ts';
import { agentMemory } from '../../../queries/agents/memory.ts';
import { type AgentRef, agentParams } from '../../../shared/contract/agents/agents.ts';
import * as contract from '../../../shared/contract/agents/memory.ts';
import { orNotFound } from '../../../shared/errors.ts';
import { type Identity, requireSelf } from '../../../shared/identity.ts';
import { masked } from '../../../shared/secrets.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';
import { requireAgent } from './agents.ts';

/** @throws AppError 404 */
async function memoryOf({ reads }: Services, identity: Identity, ref: AgentRef) {
  const memory = orNotFound(await agentMemory(reads, identity.workspace, ref), 'Agent');
  const { id, name, role } = memory;
  return { ...memory, agent: { id, name, role } };
}

/** The working memory after a command. */
async function memoryAfter({ records }: Services, { workspace }: Identity, id: number, executed: Executed) {
  const [agent, { working_memory, memory_updated_at }] = await rowsAfter(records, workspace, id, executed);
  return { working_memory, memory_updated_at: memory_updated_at ?? agent.created_at };
}

/** The agent of a memory call. @throws AppError 404, 403 */
async function memoryOwner(services: Services, identity: Identity, ref: AgentRef) {
  const agent = await requireAgent(services, identity, ref);
  requireSelf(identity, agent);
  return agent;
}

const readMemory = defineRoute({
  method: 'get',
  path: '/api/agents/{id}/memory',
  summary: 'Get the working memory of an agent',
  description:
    'The text, and any other keys stored with it. A caller that speaks for an agent may read only that agent’s memory. Secrets in the other keys are shown as 8 dashes, except to admins and to the agent’s own key; in the past, to all callers.',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: agentParams,
  refuses: [403, 404],
  responses: { 200: { description: 'The memory', schema: contract.memoryResponse } },
  async respond({ params, identity, services }) {
    const { agent, working_memory, memory_fields, memory_updated_at } = await memoryOf(services, identity, params.id);
    requireSelf(identity, agent);
    const fields = memory_fields as Record<string, unknown>;
    const own = identity.seesSecrets || (identity.agentId === agent.id && services.reads.past === undefined);
    return {
      ...((own ? fields : masked(fields)) as typeof fields),
      agent,
      working_memory,
      source: working_memory === '' && Object.keys(fields).length === 0 ? 'none' : 'database',
      updated_at: memory_updated_at,
      size: working_memory.length,
    };
  },
});

const writeMemory = defineRoute({
  method: 'put',
  path: '/api/agents/{id}/memory',
  summary: 'Replace the working memory of an agent, or append to it',
  description:
    'All other keys of the body are stored as well. The text and the other keys as JSON may have at most 524,288 characters together, and 1 MB.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  params: agentParams,
  agents: ({ params }) => params.id,
  body: contract.memoryBody,
  refuses: [404],
  responses: { 200: { description: 'Written', schema: contract.memoryPutResponse } },
  async respond({ params, body, identity, services, command }) {
    const { id, name } = await memoryOwner(services, identity, params.id);
    const append = body.append ?? false;
    const text = body.working_memory ?? '';
    const written = { text, append, fields: contract.memoryFields(body) };
    const executed = await writeMemoryOf(services.commands, command, id, written, services.now);
    const { working_memory, memory_updated_at } = await memoryAfter(services, identity, id, executed);
    return {
      success: true,
      message: `The working memory of ${name} was ${append ? 'added to' : 'replaced'}.`,
      working_memory,
      saved_to_workspace: false,
      updated_at: memory_updated_at,
      size: working_memory.length,
    };
  },
});

const clearMemory = defineRoute({
  method: 'delete',
  path: '/api/agents/{id}/memory',
  summary: 'Empty the working memory of an agent',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  params: agentParams,
  agents: ({ params }) => params.id,
  refuses: [404],
  responses: { 200: { description: 'Emptied', schema: contract.memoryDeleteResponse } },
  async respond({ params, identity, services, command }) {
    const { id, name } = await memoryOwner(services, identity, params.id);
    const stream = agentStream(identity.workspace, id);
    const executed = await services.commands.execute(agentDecider, stream, command, decideClearMemory);
    const { memory_updated_at } = await memoryAfter(services, identity, id, executed);
    return {
      success: true,
      message: `The working memory of ${name} was emptied.`,
      working_memory: '',
      updated_at: memory_updated_at,
    };
  },
});

export const agentMemoryRoutes: readonly Route[] = [readMemory, writeMemory, clearMemory];
