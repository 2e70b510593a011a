/** Commands that wait for an approval, and patterns of commands that need none. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { EXEC_DECISIONS } from '../../events/admin/exec-approvals.ts';
import { jsonObject } from '../common.ts';
import { filledText, isStorable, text, UNSTORABLE_TEXT } from '../storable.ts';

export const execApprovalsQuery = z.object({
  action: z.enum(['allowlist']).optional().describe('allowlist: the stored patterns instead of what waits'),
});

/** Patterns by agent. */
export type Allowlist = Readonly<Record<string, readonly string[]>>;

const pattern = z.object({ pattern: z.string() });
export const execApprovalsResponse = z.union([
  z.object({
    approvals: z.array(jsonObject).describe('as listed by the primary gateway; empty if it does not respond'),
  }),
  z.object({ agents: z.record(z.string(), z.array(pattern)), hash: z.string() }),
]);

export const allowlistBody = z.strictObject({
  agents: z
    .record(
      z.string().min(1, 'must not be empty').max(256).refine(isStorable, UNSTORABLE_TEXT),
      z.array(z.strictObject({ pattern: filledText(4_096) })).max(500),
    )
    .refine((agents) => Object.keys(agents).length <= 500, 'must have at most 500 agents')
    .describe('agents that are not named keep their patterns; an empty list removes them'),
  hash: z
    .string()
    .optional()
    .describe('of GET ?action=allowlist; refused with 409 when it is not the hash of what is stored'),
});
export const allowlistResponse = z.object({ ok: z.literal(true), hash: z.string() });

export const execDecisionBody = z.strictObject({
  id: filledText(512),
  action: z.enum(EXEC_DECISIONS),
  reason: text(2_000).optional(),
});

/** SHA-256 of the stored patterns; of the empty text when there are none. */
export function allowlistHash(agents: Allowlist): string {
  const names = Object.keys(agents).sort();
  const stored = names.length === 0 ? '' : JSON.stringify(names.map((name) => [name, agents[name]]));
  return createHash('sha256').update(stored).digest('hex');
}
