/** Access requests of people who signed in with Google and are not approved users. */
import { z } from 'zod';
import { ROLES } from '../../identity.ts';
import { idValue, linesOfText, unixSeconds } from '../common.ts';
import { userSchema } from './users.ts';

export const ACCESS_STATUSES = ['pending', 'approved', 'rejected'] as const;
export const accessRequestSchema = z
  .object({
    id: z.int(),
    username: z.string(),
    email: z.string(),
    reason: z.string().nullable(),
    status: z.enum(ACCESS_STATUSES),
    created_at: unixSeconds,
    provider: z.enum(['google']),
    provider_user_id: z.string().nullable(),
    display_name: z.string().nullable(),
    avatar_url: z.string().nullable(),
    requested_at: unixSeconds,
    last_attempt_at: unixSeconds,
    attempt_count: z.int().positive(),
    reviewed_by: z.string().nullable(),
    reviewed_at: unixSeconds.nullable(),
    review_note: z.string().nullable(),
    approved_user_id: z.int().nullable(),
  })
  .meta({ id: 'AccessRequest' });
export type AccessRequestRecord = z.infer<typeof accessRequestSchema>;
export const accessRequestsResponse = z.object({ requests: z.array(accessRequestSchema) });
export const accessDecisionBody = z
  .object({
    id: idValue.optional(),
    request_id: idValue.optional().describe('same as `id`'),
    action: z.enum(['approve', 'reject']),
    role: z.enum(ROLES).default('viewer').describe('of the new user; only with approve'),
    note: linesOfText(2_000).nullable().optional(),
  })
  .refine((body) => body.id !== undefined || body.request_id !== undefined, { path: ['id'], message: 'is required' })
  .meta({ required: ['id', 'action'] });
export const accessDecisionResponse = z.object({
  success: z.literal(true),
  ok: z.literal(true),
  user: userSchema.optional(),
});
