/** Response to the import of agents from the gateway configuration. */
import { z } from 'zod';

export const syncResponse = z.object({
  synced: z.int(),
  created: z.int(),
  updated: z.int(),
  agents: z.array(z.object({ id: z.string(), name: z.string(), action: z.enum(['created', 'updated', 'unchanged']) })),
  message: z.string().optional().describe('why there was nothing to import'),
});
export const syncPreviewResponse = z.object({
  inConfig: z.int(),
  inMC: z.int(),
  newAgents: z.array(z.string()),
  updatedAgents: z.array(z.string()),
  onlyInMC: z.array(z.string()),
});
