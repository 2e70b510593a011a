/** Sessions of command-line tools and of gateways, and how clients show sessions. */
import { z } from 'zod';
import { filterParam, jsonObject, limitParam, offsetParam, unixSeconds } from './common.ts';
import { filledText, isStorable, text, UNSTORABLE_TEXT } from './storable.ts';

const isoTime = z.string().describe('ISO 8601, UTC');

export const cliSessionSchema = z
  .object({
    id: z.int(),
    session_id: z.string(),
    agent_name: z.string().nullable(),
    project_slug: z.string(),
    project_path: z.string().nullable(),
    model: z.string().nullable(),
    git_branch: z.string().nullable(),
    user_messages: z.int(),
    assistant_messages: z.int(),
    tool_uses: z.int(),
    input_tokens: z.int(),
    output_tokens: z.int(),
    estimated_cost: z.number().describe('US dollars'),
    first_message_at: isoTime,
    last_message_at: isoTime,
    last_user_prompt: z.string().nullable().describe('always null: prompts stay with the tool'),
    is_active: z.int().describe('1: reported within the last 15 minutes, and not terminated'),
    scanned_at: unixSeconds.describe('last report, Unix seconds, UTC'),
    created_at: unixSeconds,
    updated_at: unixSeconds,
    workspace_id: z.int(),
  })
  .meta({ id: 'CliSession' });
export type CliSessionRecord = z.infer<typeof cliSessionSchema>;

export const cliSessionsQuery = z.object({
  active: z.string().optional().describe('1: only active ones'),
  project: filterParam.refine(isStorable, UNSTORABLE_TEXT).describe('project_slug'),
  limit: limitParam(50),
  offset: offsetParam,
});
export type CliSessionsQuery = z.infer<typeof cliSessionsQuery>;

export const cliSessionsResponse = z.object({
  sessions: z.array(cliSessionSchema).describe('last reported first'),
  total: z.int(),
  stats: z
    .object({
      total_sessions: z.int(),
      active_sessions: z.int(),
      total_input_tokens: z.int(),
      total_output_tokens: z.int(),
      total_estimated_cost: z.number().describe('US dollars, rounded to cents'),
      unique_projects: z.int(),
    })
    .describe('of all sessions'),
});

/** Maximum number of tokens and messages of one session. Sums over a million sessions stay exact. */
const MAX_COUNT = 9_000_000_000;
const count = z.int().nonnegative().max(MAX_COUNT).nullish();

export const cliSessionBody = z.object({
  session_id: filledText(200),
  agent_name: text(100).nullish(),
  model: text(200).nullish(),
  project_slug: text(200).nullish().describe('default: agent_name'),
  project_path: text(1_000).nullish(),
  git_branch: text(300).nullish(),
  user_messages: count.describe('until now, like the other numbers; absent: unchanged'),
  assistant_messages: count,
  tool_uses: count,
  input_tokens: count,
  output_tokens: count,
  estimated_cost: z.number().nonnegative().max(1e9).nullish().describe('US dollars'),
});

export const registeredSessionResponse = z.object({
  ok: z.literal(true),
  message: z.string(),
  session: cliSessionSchema,
});

export const sessionSchema = z
  .object({
    id: z.string(),
    key: z.string().describe('of a gateway: key of the session; of a tool: project'),
    agent: z.string(),
    kind: z.string().describe('of a gateway: as it says, else unknown; of a tool: claude-code'),
    age: z.string().describe('now, or minutes, hours or days: 5m, 2h, 3d; - if unknown'),
    model: z.string(),
    tokens: z
      .string()
      .describe('shortened; of a gateway: used/context (percentage), as 12k/35k (34%); of a tool: in/out, as 35k/1.2m'),
    channel: z.string(),
    flags: z.array(z.string()),
    active: z.boolean().describe('of a gateway: updated within 60 minutes; of a tool: reported within 15'),
    startTime: z.int().describe('Unix milliseconds'),
    lastActivity: z.int().describe('Unix milliseconds'),
    source: z.enum(['gateway', 'local']).describe('local: a tool. Sessions of gateways lack the next seven fields'),
    userMessages: z.int().optional(),
    assistantMessages: z.int().optional(),
    toolUses: z.int().optional(),
    estimatedCost: z.number().optional().describe('US dollars'),
    lastUserPrompt: z.string().nullable().optional(),
    workingDir: z.string().nullable().optional(),
    totalTokens: z.int().optional(),
    label: z.string().nullable().describe('as set by set-label'),
    settings: z.record(z.string(), z.string()).describe('as set by set-thinking, set-verbose and set-reasoning'),
  })
  .meta({ id: 'Session' });
export type SessionRecord = z.infer<typeof sessionSchema>;
export const sessionsResponse = z.object({
  sessions: z.array(sessionSchema).describe('last active first, at most 100'),
});

const sessionKey = z
  .string({ error: 'must be a session key' })
  .max(200)
  .regex(/^[a-zA-Z0-9:_.-]+$/, 'must be a session key: letters, digits and the characters : _ . -');

/** Values of the settings of a session, by action. */
export const SETTINGS = {
  'set-thinking': { name: 'thinking', levels: ['off', 'minimal', 'low', 'medium', 'high', 'xhigh'] },
  'set-verbose': { name: 'verbose', levels: ['off', 'on', 'full'] },
  'set-reasoning': { name: 'reasoning', levels: ['off', 'on', 'stream'] },
} as const;
export const SET_ACTIONS = ['set-thinking', 'set-verbose', 'set-reasoning', 'set-label'] as const;
const action = z.enum(SET_ACTIONS, { error: `Invalid action: must be one of ${SET_ACTIONS.join(', ')}` });

export const sessionActionQuery = z.object({ action: action.optional() });
export const sessionActionBody = z.object({
  sessionKey,
  action: action.optional().describe('unless it is in the query'),
  level: text(100).optional(),
  label: text(10_000).optional().describe('at most 100 characters'),
});
/** The result: for sessions of tools as given here, for gateway sessions the gateway's response. */
const resultOf = <Own extends z.ZodType>(own: Own) =>
  z.union([own, jsonObject]).describe('of a session at a gateway: response of the gateway');
export const sessionActionResponse = z.object({
  success: z.literal(true),
  action: z.string(),
  sessionKey: z.string(),
  result: resultOf(z.object({ requested: z.literal(true), value: z.string().nullable() })),
});

export const sessionKeyBody = z.object({ sessionKey });
export const sessionDeletedResponse = z.object({
  success: z.literal(true),
  sessionKey: z.string(),
  result: resultOf(z.object({ deleted: z.literal(true) })),
});

export const controlParams = z.object({
  id: z
    .string()
    .max(200)
    .regex(/^[a-zA-Z0-9_-]+$/, 'must have letters, digits, _ and - only'),
});
export const controlBody = z.object({
  action: z.enum(['monitor', 'pause', 'resume', 'terminate', 'kill']).describe('kill is the same as terminate'),
});
export const controlResponse = z.object({
  success: z.literal(true),
  action: z.string(),
  session: z.string(),
  result: resultOf(z.object({ requested: z.literal(true) })),
});

const COLORS = ['slate', 'blue', 'green', 'amber', 'red', 'purple', 'pink', 'teal'] as const;
const prefSchema = z.object({ name: z.string().optional(), color: z.string().optional() });
export type SessionPref = z.infer<typeof prefSchema>;
export const sessionPrefsResponse = z.object({
  prefs: z.record(z.string(), prefSchema).describe('by session; at most 5,000'),
});
export const sessionPrefBody = z.object({
  key: z
    .string()
    .max(300)
    .regex(/^[a-zA-Z0-9_-]+:[a-zA-Z0-9._:-]+$/, 'must be <kind>:<session>, such as gateway:main'),
  name: text(80).nullish().describe('null or empty: none'),
  color: z
    .enum([...COLORS, ''])
    .nullish()
    .describe('null or empty: none'),
});
export const sessionPrefResponse = z.object({ ok: z.literal(true), pref: prefSchema.optional() });
