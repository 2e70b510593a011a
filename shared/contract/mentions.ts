/** Users and agents that can be mentioned: suggestions for an editor after an `@`. */
import { z } from 'zod';
import { folded } from '../folding.ts';
import { limitParam } from './common.ts';
import { isStorable, UNSTORABLE_TEXT } from './storable.ts';

export const mentionTargetSchema = z
  .object({
    handle: z.string().describe('the text after the `@`, in lower case'),
    recipient: z.string().describe('username, or name of the agent'),
    type: z.enum(['user', 'agent']),
    display: z.string(),
    role: z.string().optional().describe('of agents that have one'),
  })
  .meta({ id: 'MentionTarget' });

export const mentionsQuery = z.object({
  q: z
    .string()
    .max(200)
    .refine(isStorable, UNSTORABLE_TEXT)
    .optional()
    .transform((value) => folded((value ?? '').trim()))
    .describe('part of a handle, a name or a display name'),
  type: z
    .string()
    .max(100)
    .optional()
    .transform((value) => (value === 'user' || value === 'agent' ? value : undefined))
    .meta({ override: { type: 'string', enum: ['user', 'agent'] } }),
  limit: limitParam(25),
});
export type MentionsQuery = z.infer<typeof mentionsQuery>;

export const mentionsResponse = z.object({
  mentions: z.array(mentionTargetSchema).describe('users by username, then agents by name'),
  total: z.int().describe('targets in this response'),
  q: z.string().describe('as searched for'),
});
