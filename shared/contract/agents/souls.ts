/** Requests and responses of an agent's soul: its persona text, and the templates for it. */
import { z } from 'zod';
import { unixSeconds } from '../common.ts';
import { text } from '../storable.ts';
import { agentHeader } from './agents.ts';

export const soulResponse = z.object({
  agent: agentHeader,
  soul_content: z.string(),
  source: z.enum(['database', 'none']),
  available_templates: z.array(z.string()),
  updated_at: unixSeconds,
});

const templateName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'must be 1 to 64 letters, digits, hyphens or underscores');

export const soulBody = z
  .object({
    soul_content: text(200_000).optional().describe('required unless template_name is given'),
    template_name: templateName.nullish().describe('use this template instead; its placeholders are filled in'),
  })
  .refine((body) => body.soul_content !== undefined || body.template_name, {
    path: ['soul_content'],
    message: 'is required: send the text, or the name of a template in template_name',
  });
export const soulPutResponse = z.object({
  success: z.literal(true),
  message: z.string(),
  soul_content: z.string(),
  saved_to_workspace: z.literal(false),
  updated_at: unixSeconds,
});

export const soulTemplatesQuery = z.object({ template: templateName.optional() });
export const soulTemplatesResponse = z.union([
  z.object({ templates: z.array(z.object({ name: z.string(), description: z.string(), size: z.int() })) }),
  z.object({ template_name: z.string(), content: z.string() }),
]);
