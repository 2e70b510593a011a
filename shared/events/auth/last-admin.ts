/**
 * Turns to remove an admin, which ensure that every tenant keeps one. Streams: `admins-<tenant>`, and `user-<id>` of
 * the admin. The protocol is in `commands/auth/last-admin.ts`.
 */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const adminsStream = (tenant: number): string => `admins-${tenant}`;

export const adminRemovalBegun = defineEvent({
  type: 'AdminRemovalBegun',
  doc: 'A tenant is about to lose an enabled admin, and another one remains. Written before the user is changed; the protocol is in `commands/auth/last-admin.ts`.',
  schema: z.object({
    tenant: z.int().positive(),
    user_id: z.int().positive(),
    /** How many turns to remove this user ended before this one. */
    turn: z.int().nonnegative(),
  }),
});

export const adminRemovalVoided = defineEvent({
  type: 'AdminRemovalVoided',
  doc: 'An announced removal of an admin did not take place. Written to the admin’s stream before another removal begins, so that a late removal must announce itself again.',
  schema: z.object({ user_id: z.int().positive() }),
});
