/** Requests and answers of sign-in, users, access requests, first-run setup and API keys. */
import { z } from 'zod';
import { KEY_SOURCES } from '../../events/auth/access.ts';
import { PROVIDERS } from '../../events/auth/users.ts';
import { ROLES } from '../../identity.ts';
import { displayNameFault, textFault, userNameFault } from '../../names.ts';
import { idValue, unixSeconds } from '../common.ts';

// Text that PostgreSQL cannot store (NUL, half of a surrogate pair) or that would deceive a reader of the audit trail.
const UNPRINTABLE = /[\p{Cc}\p{Surrogate}\u2028\u2029]/u;
/** One line of printable text. */
export const lineOfText = (min: number, max: number) =>
  z
    .string()
    .min(min, min === 1 ? 'must not be empty' : `must have at least ${min} characters`)
    .max(max, `must have at most ${max} characters`)
    .refine((value) => !UNPRINTABLE.test(value), 'must not hold control characters or broken Unicode');

/** Refuses what `fault` finds a reason against. */
const without =
  (fault: (value: string) => string | undefined) =>
  (value: string, context: z.RefinementCtx): void => {
    const message = fault(value);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  };

/** Several lines: notes. */
const text = (max: number) =>
  z
    .string()
    .max(max, `must have at most ${max} characters`)
    .refine((value) => !/[\0\p{Surrogate}]/u.test(value), 'must not hold NUL or broken Unicode');

export const MIN_OWN_PASSWORD = 8;
export const MIN_PASSWORD = 12;
const MAX_PASSWORD = 1_024;
/** Passwords are hashed as they come; no character is refused. */
const password = z.string().max(MAX_PASSWORD, `must have at most ${MAX_PASSWORD} characters`);
/** Defaults that everybody knows. */
const INSECURE_PASSWORDS: readonly string[] = [
  'admin',
  'password',
  'change-me-on-first-login',
  'changeme',
  'testpass123',
];
export const isInsecurePassword = (value: string): boolean => INSECURE_PASSWORDS.includes(value);
const newPassword = password
  .min(MIN_PASSWORD, `must have at least ${MIN_PASSWORD} characters`)
  .refine((value) => !isInsecurePassword(value), 'is a default that everybody knows');

/** Case-sensitive, unique over the whole deployment. */
export const newUsername = lineOfText(1, 128).normalize('NFC').superRefine(without(userNameFault));
const email = lineOfText(0, 320).superRefine(without(textFault)).nullable();
const url = lineOfText(0, 2_048).nullable();
const displayName = lineOfText(0, 200).normalize('NFC').superRefine(without(displayNameFault));

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

/** The caller. API keys are callers without an account: they lack what only accounts have. */
export const callerSchema = userSchema
  .partial({ is_approved: true, created_at: true, updated_at: true, last_login_at: true })
  .meta({ id: 'Caller', description: 'id 0: the deployment key; below 0: an agent key' });
export type CallerRecord = z.infer<typeof callerSchema>;

export const loginBody = z.object({
  username: lineOfText(1, 320).normalize('NFC'),
  password: password.min(1, 'must not be empty'),
});
export const callerAnswer = z.object({ user: callerSchema });
export const googleBody = z.object({
  credential: z.string().min(1, 'must not be empty').max(16_384).describe('Google ID token'),
});
export const signedOutAnswer = z.object({ ok: z.literal(true), success: z.literal(true) });

export const profileBody = z.object({
  current_password: password.optional(),
  // The length is checked after the caller's kind, so that an API key is told that it has no profile.
  new_password: password.optional().meta({ minLength: MIN_OWN_PASSWORD }),
  display_name: displayName.optional(),
});
export const profileAnswer = z.object({ success: z.literal(true), user: callerSchema });

export const usersAnswer = z.object({ users: z.array(userSchema) });
export const userAnswer = z.object({ user: userSchema });
export const newUserBody = z.object({
  username: newUsername,
  password: newPassword,
  role,
  display_name: displayName.optional(),
  email: email.optional(),
  provider: provider.default('local'),
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
  password: z
    .union([z.literal(''), newPassword])
    .optional()
    .describe('empty: unchanged'),
});
export const idBody = z.object({ id: idValue });
export const successAnswer = z.object({ success: z.literal(true) });

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
export const accessRequestsAnswer = z.object({ requests: z.array(accessRequestSchema) });
export const accessDecisionBody = z
  .object({
    id: idValue.optional(),
    request_id: idValue.optional().describe('the same as id, for older clients'),
    action: z.enum(['approve', 'reject']),
    role: role.default('viewer').describe('of the new user; only with approve'),
    note: text(2_000).nullable().optional(),
  })
  .refine((body) => body.id !== undefined || body.request_id !== undefined, { path: ['id'], message: 'is required' })
  .meta({ required: ['id', 'action'] });
export const accessDecisionAnswer = z.object({
  success: z.literal(true),
  ok: z.literal(true),
  user: userSchema.optional(),
});

export const setupState = z.object({ needsSetup: z.boolean() });
export const setupBody = z.object({
  username: z
    .string()
    .trim()
    .toLowerCase()
    .min(2, 'must have at least 2 characters')
    .max(64, 'must have at most 64 characters')
    .regex(/^[a-z0-9_.-]*$/, 'may hold letters, digits, _ . and - only')
    .superRefine(without(userNameFault)),
  password: newPassword,
  displayName: displayName.optional(),
});

export const globalKeyState = z.object({
  masked_key: z.string().nullable().describe('null when only a hash is stored'),
  source: z.enum(KEY_SOURCES),
  last_rotated_at: unixSeconds.nullable(),
  last_rotated_by: z.string().nullable(),
  configured: z.boolean(),
});
export const globalKeyAnswer = z.object({
  key: z.string().describe('shown once'),
  masked_key: z.string(),
  rotated_at: unixSeconds,
  rotated_by: z.string(),
  message: z.string(),
});

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
    last_used_at: unixSeconds.nullable(),
    created_at: unixSeconds,
    updated_at: unixSeconds,
  })
  .meta({ id: 'AgentKey' });
export type AgentKeyRecord = z.infer<typeof agentKeySchema>;
export const agentKeysAnswer = z.object({
  agent: z.object({ id: z.int(), name: z.string() }),
  keys: z.array(agentKeySchema),
});
export const newAgentKeyBody = z.object({
  name: text(10_000)
    .default('default')
    // Cut by characters, not by halves of them.
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
    .positive('must be above 0')
    .optional()
    .describe('Unix seconds; wins over expires_in_days'),
  expires_in_days: z.number().positive('must be above 0').max(3_650, 'must be at most 3650').optional(),
});
export const newAgentKeyAnswer = z.object({
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
export const revokedAgentKeyAnswer = z.object({
  success: z.literal(true),
  key_id: z.int(),
  revoked_at: unixSeconds,
});
