/** Souls (persona texts) of agents. */
import { agentDecider, agentStream } from '../../../commands/agents/agents.ts';
import { decideSoul, fillSoul, SOUL_TEMPLATES, soulTemplate } from '../../../commands/agents/souls.ts';
import { findAgent, rowsAfter } from '../../../queries/agents/agents.ts';
import { agentSoul } from '../../../queries/agents/souls.ts';
import { type AgentRef, agentParams } from '../../../shared/contract/agents/agents.ts';
import * as contract from '../../../shared/contract/agents/souls.ts';
import { orNotFound } from '../../../shared/errors.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';
import { requireAgent } from './agents.ts';

/** @throws AppError 404 */
async function soulOf({ reads }: Services, workspace: number, ref: AgentRef) {
  const soul = orNotFound(await agentSoul(reads, workspace, ref), 'Agent');
  const { id, name, role } = soul;
  return { ...soul, agent: { id, name, role } };
}

const readSoul = defineCachedRoute({
  method: 'get',
  path: '/api/agents/{id}/soul',
  summary: 'Get the persona (soul) of an agent',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: agentParams,
  refuses: [404],
  responses: { 200: { description: 'The soul', schema: contract.soulResponse } },
  cache: { models: ['agents'] },
  async respond({ params, identity, services }) {
    const { agent, soul_content, soul_updated_at } = await soulOf(services, identity.workspace, params.id);
    return {
      agent,
      soul_content: soul_content ?? '',
      source: soul_content ? 'database' : 'none',
      available_templates: SOUL_TEMPLATES.map((template) => template.name),
      updated_at: soul_updated_at,
    };
  },
});

const writeSoul = defineRoute({
  method: 'put',
  path: '/api/agents/{id}/soul',
  summary: 'Replace the persona (soul) of an agent with a text or a template',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'partly', past: 'none', prompts: 'screened' },
  params: agentParams,
  agents: ({ params }) => params.id,
  body: contract.soulBody,
  refuses: [404],
  responses: { 200: { description: 'Written', schema: contract.soulPutResponse } },
  async respond({ params, body, identity, services, command, checkShared }) {
    const agent = await requireAgent(services, identity, params.id);
    const template = body.template_name ?? null;
    if (template !== null) await checkShared('soul templates');
    const content =
      template === null ? (body.soul_content ?? '') : fillSoul(requireTemplate(template), agent, services.now());
    const stream = agentStream(identity.workspace, agent.id);
    const executed = await services.commands.execute(agentDecider, stream, command, (state) =>
      decideSoul(state, content, template),
    );
    const [{ created_at }, texts] = await rowsAfter(services.records, identity.workspace, agent.id, executed);
    const { soul_content, soul_updated_at } = texts;
    return {
      success: true,
      message: `The soul of ${agent.name} was ${template === null ? 'replaced' : `loaded from the template ${template}`}.`,
      soul_content: soul_content ?? '',
      saved_to_workspace: false,
      updated_at: soul_updated_at ?? created_at,
    };
  },
});

/** @throws AppError 404 for an unknown template */
const requireTemplate = (name: string): string => orNotFound(soulTemplate(name), `Soul template ${name}`);

const soulTemplates = defineRoute({
  method: 'patch',
  path: '/api/agents/{id}/soul',
  summary: 'List persona templates, or get the text of one',
  description: 'Changes nothing; a body is ignored.',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'refused', past: 'none', prompts: 'screened' },
  limit: 'none',
  shared: 'soul templates',
  params: agentParams,
  query: contract.soulTemplatesQuery,
  refuses: [403, 404],
  responses: {
    200: { description: 'The templates, or the one named in `template`', schema: contract.soulTemplatesResponse },
  },
  async respond({ params, query, identity, services }) {
    orNotFound(await findAgent(services.reads, identity.workspace, params.id), 'Agent');
    if (query.template === undefined) return { templates: SOUL_TEMPLATES };
    return { template_name: query.template, content: requireTemplate(query.template) };
  },
});

export const agentSoulRoutes: readonly Route[] = [readSoul, writeSoul, soulTemplates];
