/** Import of agents from the stored gateway configuration. */
import { syncAgents } from '../../../commands/agents/sync.ts';
import { agentIds } from '../../../queries/agents/agents.ts';
import { previewSync } from '../../../queries/agents/sync.ts';
import { syncPreviewResponse, syncResponse } from '../../../shared/contract/agents/sync.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import { agentRoom } from './agents.ts';

const preview = defineCachedRoute({
  method: 'get',
  path: '/api/agents/sync',
  summary: 'Preview an import from the gateway configuration',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'all', prompts: 'none' },
  shared: 'agents/sync',
  refuses: [422],
  responses: { 200: { description: 'Names of agents, by what would happen to them', schema: syncPreviewResponse } },
  cache: { models: ['agents', 'gateway_config'] },
  respond: ({ identity, services }) => previewSync(services.reads, identity.workspace),
});

const sync = defineRoute({
  method: 'post',
  path: '/api/agents/sync',
  summary: 'Import agents from the gateway configuration',
  description: 'Creates agents that do not exist, and updates role and config of the others from the document.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'screened' },
  shared: 'agents/sync',
  refuses: [409, 422],
  responses: { 200: { description: 'What was done', schema: syncResponse } },
  async respond({ identity, services, command }) {
    const idsOf = (names: readonly string[]) => agentIds(services.reads, identity.workspace, names);
    return syncAgents(services.commands, command, agentRoom(services), idsOf);
  },
});

export const agentSyncRoutes: readonly Route[] = [preview, sync];
