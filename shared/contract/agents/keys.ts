/** API keys of agents. */
import { z } from 'zod';
import { textFault } from '../../names.ts';
import { idValue, linesOfText, MAX_SECONDS, notInThePast, unixSeconds, without } from '../common.ts';

export const AGENT_KEY_SCOPES = [
  'viewer',
  'operator',
  'admin',
  'agent:self',
  'agent:diagnostics',
  'agent:attribution',
  'agent:heartbeat',
  'agent:messages',
] as const;
const scope = z.enum(AGENT_KEY_SCOPES);

export const agentKeySchema = z
  .object({
    id: z.int(),
    name: z.string(),
    key_prefix: z.string(),
    scopes: z.array(z.string()),
    created_by: z.string().nullable(),
    expires_at: unixSeconds.nullable(),
    revoked_at: unixSeconds.nullable(),
    last_used_at: notInThePast(unixSeconds.nullable()),
    created_at: unixSeconds,
    updated_at: unixSeconds,
  })
  .meta({ id: 'AgentKey' });
export type AgentKeyRecord = z.infer<typeof agentKeySchema>;
export const agentKeysResponse = z.object({
  agent: z.object({ id: z.int(), name: z.string() }),
  keys: z.array(agentKeySchema),
});
export const newAgentKeyBody = z.object({
  name: linesOfText(10_000)
    .default('default')
    // By code points, so that no surrogate pair is split.
    .transform((value) => [...value.trim()].slice(0, 128).join(''))
    .refine((value) => value !== '', 'must not be blank')
    .superRefine(without(textFault))
    .meta({ override: { type: 'string', maxLength: 128, default: 'default' } }),
  scopes: z
    .array(z.string().max(100))
    .max(100)
    .default([])
    .transform((values) => [...new Set(values)].filter((value) => scope.safeParse(value).success))
    .meta({
      override: { type: 'array', items: { type: 'string', enum: AGENT_KEY_SCOPES }, default: ['viewer', 'agent:self'] },
    }),
  expires_at: z
    .int('must be Unix seconds')
    .positive('must be greater than 0')
    .max(MAX_SECONDS, 'must be Unix seconds')
    .optional()
    .describe('Unix seconds; takes precedence over expires_in_days'),
  expires_in_days: z.number().positive('must be greater than 0').max(3_650, 'must be at most 3650').optional(),
});
export const newAgentKeyResponse = z.object({
  key: agentKeySchema.pick({
    id: true,
    name: true,
    key_prefix: true,
    scopes: true,
    expires_at: true,
    created_at: true,
  }),
  api_key: z.string().describe('shown once'),
});
export const revokeAgentKeyBody = z.object({ key_id: idValue });
export const revokedAgentKeyResponse = z.object({
  success: z.literal(true),
  key_id: z.int(),
  revoked_at: unixSeconds,
});
