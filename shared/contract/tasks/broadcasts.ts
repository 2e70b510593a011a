/** Messages to all subscribers of a task. */
import { z } from 'zod';
import { filledText } from '../storable.ts';

export const broadcastBody = z.object({ message: filledText(10_000) });

export const broadcastResponse = z.object({
  sent: z.int().describe('agents that were notified'),
  skipped: z.int().describe('agents without a session'),
  success: z.literal(true),
  delivered_to: z.array(z.string()).describe('names of the agents that were notified'),
});
