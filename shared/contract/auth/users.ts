/** Users: their fields and rules, and how admins manage them. */
import { z } from 'zod';
import { PROVIDERS } from '../../events/auth/users.ts';
import { ROLES } from '../../identity.ts';
import { displayNameFault, textFault, userNameFault } from '../../names.ts';
import { idValue, lineOfText, unixSeconds, without } from '../common.ts';

export const MIN_PASSWORD = 12;
const MAX_PASSWORD = 1_024;
/** Passwords are hashed as sent; any character is allowed. */
export const password = z.string().max(MAX_PASSWORD, `must have at most ${MAX_PASSWORD} characters`);
/** Well-known defaults. */
const INSECURE_PASSWORDS: readonly string[] = [
  'admin',
  'password',
  'change-me-on-first-login',
  'changeme',
  'testpass123',
];
export const isInsecurePassword = (value: string): boolean => INSECURE_PASSWORDS.includes(value);
export const newPassword = password
  .min(MIN_PASSWORD, `must have at least ${MIN_PASSWORD} characters`)
  .refine((value) => !isInsecurePassword(value), 'is a well-known default; choose another one');

/** Case-sensitive and unique in the deployment. */
export const newUsername = lineOfText(1, 128).normalize('NFC').superRefine(without(userNameFault));
const email = lineOfText(0, 320).superRefine(without(textFault)).nullable();
const url = lineOfText(0, 2_048).nullable();
export const displayName = lineOfText(0, 200).normalize('NFC').superRefine(without(displayNameFault));

const role = z.enum(ROLES);
const provider = z.enum(PROVIDERS);

export const userSchema = z
  .object({
    id: z.int(),
    username: z.string(),
    display_name: z.string(),
    role,
    provider,
    email: z.string().nullable(),
    avatar_url: z.string().nullable(),
    is_approved: z.union([z.literal(0), z.literal(1)]),
    workspace_id: z.int(),
    tenant_id: z.int(),
    created_at: unixSeconds,
    updated_at: unixSeconds,
    last_login_at: unixSeconds.nullable(),
  })
  .meta({ id: 'User' });
export type UserRecord = z.infer<typeof userSchema>;

export const usersResponse = z.object({ users: z.array(userSchema) });
export const userResponse = z.object({ user: userSchema });
export const newUserBody = z.object({
  username: newUsername,
  password: newPassword,
  role,
  display_name: displayName.optional(),
  email: email.optional(),
  provider: z.enum(['local', 'google']).default('local'),
  workspace_id: idValue
    .optional()
    .describe("default: the caller's; admins of the default tenant may name any, others one of their tenant"),
});
export const userChangesBody = z.object({
  id: idValue,
  display_name: displayName.optional(),
  role: role.optional(),
  email: email.optional(),
  avatar_url: url.optional(),
  is_approved: z
    .union([z.literal(0), z.literal(1), z.boolean()])
    .optional()
    .describe('0 ends the sessions of the user and refuses new ones'),
  workspace_id: idValue.optional().describe('moves the user to this workspace; sessions move too, open streams end'),
  password: z
    .union([z.literal(''), newPassword])
    .optional()
    .describe('empty or absent: unchanged'),
});
