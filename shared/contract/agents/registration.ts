/** Request and response of an agent that registers itself. */
import { z } from 'zod';
import { unixSeconds } from '../common.ts';
import { isStorable, UNSTORABLE_TEXT } from '../storable.ts';

export const SELF_REGISTER_ROLES = [
  'coder',
  'reviewer',
  'tester',
  'devops',
  'researcher',
  'assistant',
  'agent',
] as const;

export const registerBody = z.object({
  name: z
    .string()
    .trim()
    .normalize('NFC')
    .max(63, 'must have at most 63 characters')
    .regex(
      /^[\p{L}\p{N}\p{Extended_Pictographic}](?:[\p{L}\p{M}\p{N}\p{Extended_Pictographic}\p{Emoji_Modifier}._-]|\u200d|\ufe0f)*$/u,
      'must start with a letter or digit and consist of letters of any script, digits, emoji, dots, hyphens and underscores',
    ),
  role: z
    .enum(SELF_REGISTER_ROLES, { error: `must be one of ${SELF_REGISTER_ROLES.join(', ')}` })
    .optional()
    .describe('default agent; an existing agent keeps its role'),
  capabilities: z
    .array(z.unknown())
    .max(200)
    .optional()
    .transform(
      (list) =>
        list?.filter((one): one is string => typeof one === 'string' && one.length <= 200 && isStorable(one)) ?? [],
    )
    .meta({ override: { type: 'array', items: { type: 'string' } } })
    .describe('entries that are not strings are ignored'),
  framework: z
    .string()
    .trim()
    .max(100)
    .refine(isStorable, UNSTORABLE_TEXT)
    .nullish()
    .transform((value) => (value ? value : null))
    .meta({ override: { type: ['string', 'null'] } }),
});

export const registerResponse = z.object({
  agent: z.object({
    id: z.int(),
    name: z.string(),
    role: z.string(),
    status: z.literal('idle'),
    created_at: unixSeconds,
  }),
  registered: z.boolean().describe('false: the agent already existed'),
  message: z.string(),
});
