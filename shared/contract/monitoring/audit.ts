/** The audit trail. */
import { z } from 'zod';
import { CHANNELS } from '../../events/metadata.ts';
import { filterParam, jsonObject, limitParam, offsetParam, secondsParam, unixSeconds } from '../common.ts';
import { nameFilter } from '../storable.ts';

export const auditEntrySchema = z
  .object({
    id: z.int(),
    action: z.string(),
    actor: z.string(),
    actor_id: z.int().nullable(),
    target_type: z.string().nullable(),
    target_id: z.int().nullable(),
    detail: jsonObject.nullable(),
    ip_address: z.string().nullable(),
    user_agent: z.string().nullable(),
    via: z.enum(CHANNELS).nullable().describe('`mcp`: a tool call; null: another request, or none'),
    created_at: unixSeconds,
    workspace_id: z.int(),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof auditEntrySchema>;

export const auditQuery = z.object({
  action: filterParam,
  actor: nameFilter,
  since: secondsParam.describe('from this time on, Unix seconds'),
  until: secondsParam.describe('up to this time, Unix seconds'),
  limit: limitParam(100, 10_000),
  offset: offsetParam,
});
export type AuditQuery = z.infer<typeof auditQuery>;

export const auditResponse = z.object({
  entries: z.array(auditEntrySchema),
  total: z.int(),
  limit: z.int(),
  offset: z.int(),
});
