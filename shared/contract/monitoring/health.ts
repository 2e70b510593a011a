/** Probes. */
import { z } from 'zod';

export const livenessResponse = z.object({ status: z.string() });

export const readinessResponse = livenessResponse.extend({
  checks: z.record(z.string(), z.string()).describe('ok, failing, stuck or behind'),
  details: z.record(z.string(), z.string()).optional().describe('for admins of the default tenant'),
});

export const healthResponse = z.object({ status: z.string(), db: z.string(), ts: z.string() });
