/** Probes. */
import { z } from 'zod';

export const livenessAnswer = z.object({ status: z.string() });

export const readinessAnswer = livenessAnswer.extend({
  checks: z.record(z.string(), z.string()).describe('ok, failing, stuck or behind'),
  details: z.record(z.string(), z.string()).optional().describe('for admins of the default tenant'),
});

export const healthAnswer = z.object({ status: z.string(), db: z.string(), ts: z.string() });
