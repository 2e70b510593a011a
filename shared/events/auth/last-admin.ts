/**
 * Turns to remove an admin, so that every tenant keeps one. Streams: `admins-<tenant>`, and
 * `user-<id>` of the admin. The protocol is in `commands/auth/last-admin.ts`.
 */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const adminsStream = (tenant: number): string => `admins-${tenant}`;

export const adminRemovalBegun = defineEvent({
  type: 'AdminRemovalBegun',
  version: 1,
  doc: 'A tenant is about to lose an enabled admin, and another one was seen who stays. Written before the user is changed; the protocol is in `commands/auth/last-admin.ts`.',
  schema: z.object({
    tenant: z.int().positive(),
    userId: z.int().positive(),
    /** How many turns to remove this user had ended before this one. */
    turn: z.int().nonnegative(),
  }),
});

export const adminRemovalVoided = defineEvent({
  type: 'AdminRemovalVoided',
  version: 1,
  doc: 'Written to the stream of an admin whose announced removal did not come, before somebody else takes a turn: a late removal has to take another one.',
  schema: z.object({ userId: z.int().positive() }),
});

export const lastAdminEvents = [adminRemovalBegun, adminRemovalVoided];
