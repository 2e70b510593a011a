/** Imports of agents from the gateway configuration. Streams: `agent_sync-<workspace>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const agentsSynced = defineEvent({
  type: 'AgentsSynced',
  doc: 'Agents were imported from the gateway configuration.',
  schema: z.object({ synced: z.int(), created: z.int(), updated: z.int(), agents: z.array(z.string()) }),
  audit: ({ data }) => ({ action: 'agent_config_sync', detail: { ...data } }),
  frames: ({ data }) => [
    {
      type: 'agent.created',
      data: { type: 'sync', synced: data.synced, created: data.created, updated: data.updated },
    },
  ],
});
