/** How receivers verify deliveries: the response with the documentation. */
import { z } from 'zod';

export const verifyDocsResponse = z.object({
  algorithm: z.literal('HMAC-SHA256'),
  header: z.literal('X-MC-Signature'),
  format: z.literal('sha256=<hex-digest>'),
  description: z.string(),
  verification_steps: z.array(z.string()),
  example_nodejs: z.string(),
  standard_webhooks: z
    .object({ headers: z.array(z.string()), format: z.string(), description: z.string() })
    .describe('the same delivery, verified with any library for Standard Webhooks'),
});
