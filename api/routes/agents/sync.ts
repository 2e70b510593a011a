/** Import of agents from the stored gateway configuration. */
import { syncAgents } from '../../../commands/agents/sync.ts';
import { agentIds } from '../../../queries/agents/agents.ts';
import { previewSync } from '../../../queries/agents/sync.ts';
import { syncAnswer, syncPreviewAnswer } from '../../../shared/contract/agents/sync.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const preview = defineRoute({
  method: 'get',
  path: '/api/agents/sync',
  tag: 'Agents',
  summary: 'What an import from the gateway configuration would do',
  access: 'admin',
  refuses: [422],
  responses: {
    200: { description: 'Names, by what would happen', schema: syncPreviewAnswer },
  },
  cache: { models: ['agents', 'gateway_config'], scope: 'workspace' },
  handle: async ({ identity, services }) => ({ body: await previewSync(services.reads, identity.workspace) }),
});

const sync = defineRoute({
  method: 'post',
  path: '/api/agents/sync',
  tag: 'Agents',
  summary: 'Import agents from the gateway configuration',
  description: 'Creates agents that do not exist; brings role and config of the others to what the document says.',
  access: 'admin',
  limit: 'mutation',
  refuses: [409, 422],
  responses: {
    200: { description: 'What was done', schema: syncAnswer },
  },
  handle: async ({ identity, services, command }) => ({
    body: await syncAgents(services.commands, command, (names) => agentIds(services.reads, identity.workspace, names)),
  }),
});

export const agentSyncRoutes: readonly Route[] = [preview, sync];
