/** Texts of agents: working memory and soul (persona). */
import { agentDecider, agentStream, decideSoul } from '../../../commands/agents/agents.ts';
import { decideClearMemory, writeMemory as writeMemoryOf } from '../../../commands/agents/memory.ts';
import { fillSoul, SOUL_TEMPLATES, soulTemplate } from '../../../commands/agents/souls.ts';
import { agentTexts } from '../../../queries/agents/agents.ts';
import { type AgentRef, agentParams } from '../../../shared/contract/agents/agents.ts';
import {
  memoryAnswer,
  memoryBody,
  memoryDeleteAnswer,
  memoryFields,
  memoryPutAnswer,
  soulAnswer,
  soulBody,
  soulPutAnswer,
  soulTemplatesAnswer,
  soulTemplatesQuery,
} from '../../../shared/contract/agents/life.ts';
import { notFound } from '../../../shared/errors.ts';
import type { Identity } from '../../../shared/identity.ts';
import { masked } from '../../../shared/secrets.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';
import { requireAgent, requireSelf } from './scope.ts';

/** @throws AppError 404 */
async function textsOf({ reads }: Services, identity: Identity, ref: AgentRef) {
  const texts = await agentTexts(reads, identity.workspace, ref);
  if (!texts) throw notFound('Agent');
  const { id, name, role } = texts;
  return { ...texts, agent: { id, name, role } };
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
  tag: 'Agents',
  summary: 'Working memory of an agent',
  description:
    'The text, and the keys that were put besides it. A caller that speaks for an agent may only read that agent’s memory. Secrets in the other keys are shown as 8 dashes, except to admins and to the agent’s own key.',
  access: 'viewer',
  params: agentParams,
  refuses: [403, 404],
  responses: { 200: { description: 'The memory', schema: memoryAnswer } },
  async handle({ params, identity, services }) {
    const { agent, working_memory, memory_fields, memory_updated_at } = await textsOf(services, identity, params.id);
    requireSelf(identity, agent);
    const fields = memory_fields as Record<string, unknown>;
    const own = identity.role === 'admin' || identity.agentId === agent.id;
    return {
      body: {
        ...((own ? fields : masked(fields)) as typeof fields),
        agent,
        working_memory,
        source: working_memory === '' && Object.keys(fields).length === 0 ? 'none' : 'database',
        updated_at: memory_updated_at,
        size: working_memory.length,
      },
    };
  },
});

const writeMemory = defineRoute({
  method: 'put',
  path: '/api/agents/{id}/memory',
  tag: 'Agents',
  summary: 'Replace the working memory of an agent, or add to it',
  description:
    'Every other key of the body is kept too. At most 524,288 characters with the other keys as JSON, and 1 MB as JSON.',
  access: 'operator',
  limit: 'mutation',
  params: agentParams,
  body: memoryBody,
  refuses: [404],
  responses: { 200: { description: 'Written', schema: memoryPutAnswer } },
  async handle({ params, body, identity, services, command }) {
    const { id, name } = await memoryOwner(services, identity, params.id);
    const append = body.append ?? false;
    const text = body.working_memory ?? '';
    const written = { text, append, fields: memoryFields(body) };
    await writeMemoryOf(services.commands, command, id, written, services.now);
    const { working_memory, memory_updated_at } = await textsOf(services, identity, { id });
    return {
      body: {
        success: true,
        message: `The working memory of ${name} was ${append ? 'added to' : 'replaced'}.`,
        working_memory,
        saved_to_workspace: false,
        updated_at: memory_updated_at,
        size: working_memory.length,
      },
    };
  },
});

const clearMemory = defineRoute({
  method: 'delete',
  path: '/api/agents/{id}/memory',
  tag: 'Agents',
  summary: 'Empty the working memory of an agent',
  access: 'operator',
  limit: 'mutation',
  params: agentParams,
  refuses: [404],
  responses: { 200: { description: 'Emptied', schema: memoryDeleteAnswer } },
  async handle({ params, identity, services, command }) {
    const { id, name } = await memoryOwner(services, identity, params.id);
    await services.commands.execute(agentDecider, agentStream(identity.workspace, id), command, decideClearMemory);
    const { memory_updated_at } = await textsOf(services, identity, { id });
    return {
      body: {
        success: true,
        message: `The working memory of ${name} was emptied.`,
        working_memory: '',
        updated_at: memory_updated_at,
      },
    };
  },
});

const readSoul = defineRoute({
  method: 'get',
  path: '/api/agents/{id}/soul',
  tag: 'Agents',
  summary: 'Soul (persona text) of an agent',
  access: 'viewer',
  params: agentParams,
  refuses: [404],
  responses: { 200: { description: 'The soul', schema: soulAnswer } },
  cache: { models: ['agents'], scope: 'workspace' },
  async handle({ params, identity, services }) {
    const { agent, soul_content, soul_updated_at } = await textsOf(services, identity, params.id);
    return {
      body: {
        agent,
        soul_content: soul_content ?? '',
        source: soul_content ? 'database' : 'none',
        available_templates: SOUL_TEMPLATES.map((template) => template.name),
        updated_at: soul_updated_at,
      },
    };
  },
});

const writeSoul = defineRoute({
  method: 'put',
  path: '/api/agents/{id}/soul',
  tag: 'Agents',
  summary: 'Replace the soul of an agent, by a text or from a template',
  access: 'operator',
  limit: 'mutation',
  params: agentParams,
  body: soulBody,
  refuses: [404],
  responses: { 200: { description: 'Written', schema: soulPutAnswer } },
  async handle({ params, body, identity, services, command }) {
    const agent = await requireAgent(services, identity, params.id);
    const template = body.template_name ?? null;
    const content = template === null ? (body.soul_content ?? '') : filled(template, agent, services.now());
    await services.commands.execute(agentDecider, agentStream(identity.workspace, agent.id), command, (state) =>
      decideSoul(state, content, template),
    );
    const { soul_content, soul_updated_at } = await textsOf(services, identity, { id: agent.id });
    return {
      body: {
        success: true,
        message: `The soul of ${agent.name} was ${template === null ? 'replaced' : `loaded from the template ${template}`}.`,
        soul_content: soul_content ?? '',
        saved_to_workspace: false,
        updated_at: soul_updated_at,
      },
    };
  },
});

/** @throws AppError 404 for an unknown template */
function filled(template: string, agent: { readonly name: string; readonly role: string }, now: number): string {
  const content = soulTemplate(template);
  if (content === undefined) throw notFound(`Soul template ${template}`);
  return fillSoul(content, agent, now);
}

const soulTemplates = defineRoute({
  method: 'patch',
  path: '/api/agents/{id}/soul',
  tag: 'Agents',
  summary: 'Soul templates: all of them, or the text of one',
  description: 'Changes nothing; a body is ignored.',
  access: 'viewer',
  params: agentParams,
  query: soulTemplatesQuery,
  refuses: [403, 404],
  responses: {
    200: { description: 'The templates, or one of them with `template`', schema: soulTemplatesAnswer },
  },
  async handle({ params, query, identity, services }) {
    await requireAgent(services, identity, params.id);
    if (query.template === undefined) return { body: { templates: SOUL_TEMPLATES } };
    const content = soulTemplate(query.template);
    if (content === undefined) throw notFound(`Soul template ${query.template}`);
    return { body: { template_name: query.template, content } };
  },
});

export const agentTextRoutes: readonly Route[] = [
  readMemory,
  writeMemory,
  clearMemory,
  readSoul,
  writeSoul,
  soulTemplates,
];
