/** First-run setup: whether a deployment still needs its first admin, and creating that admin. */
import { z } from 'zod';
import { userNameFault } from '../../names.ts';
import { without } from '../common.ts';
import { displayName, newPassword } from './users.ts';

export const setupState = z.object({ needsSetup: z.boolean() });
export const setupBody = z.object({
  username: z
    .string()
    .trim()
    .toLowerCase()
    .min(2, 'must have at least 2 characters')
    .max(64, 'must have at most 64 characters')
    .regex(/^[a-z0-9_.-]*$/, 'must contain only letters, digits, _ . and -')
    .superRefine(without(userNameFault)),
  password: newPassword,
  displayName: displayName.optional(),
});
