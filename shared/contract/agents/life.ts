/** Requests and answers of what agents do and say: heartbeat, wake-up, memory, soul, messages, adapters. */
import { z } from 'zod';
import { filterParam, jsonObject, limitParam, offsetParam, secondsParam, unixSeconds } from '../common.ts';
import { isStorable, storable, storableObject, storableValue, UNSTORABLE_TEXT } from '../storable.ts';
import { filledText, text } from './agents.ts';

const agentHeader = z.object({ id: z.int(), name: z.string(), role: z.string() });

// --- Heartbeat and wake-up --------------------------------------------------------------------------------------------

export const messageSchema = z
  .object({
    id: z.int(),
    from_agent: z.string(),
    to_agent: z.string(),
    content: z.string(),
    type: z.string(),
    created_at: unixSeconds,
    message_type: z.string().describe('the same as type'),
    conversation_id: z.string(),
    metadata: jsonObject.nullable(),
    read_at: unixSeconds.nullable(),
    workspace_id: z.int(),
  })
  .meta({ id: 'AgentMessage' });
export type AgentMessageRecord = z.infer<typeof messageSchema>;

export const workItemsSchema = z.object({
  type: z.enum(['assigned_tasks', 'notifications', 'urgent_activities']),
  count: z.int(),
  items: z.array(jsonObject),
});

export const heartbeatAnswer = z.object({
  status: z.enum(['HEARTBEAT_OK', 'WORK_ITEMS_FOUND']),
  agent: z.string().describe('name'),
  checked_at: unixSeconds,
  message: z.string().optional().describe('only with HEARTBEAT_OK'),
  work_items: z.array(workItemsSchema).optional().describe('only with WORK_ITEMS_FOUND; empty groups are left out'),
  total_items: z.int().optional().describe('only with WORK_ITEMS_FOUND'),
  pending_tasks: z.array(jsonObject),
  messages: z.array(messageSchema).describe('unread messages to the agent, oldest first, the newest 50'),
});
export const heartbeatPostAnswer = heartbeatAnswer.extend({
  success: z.literal(true),
  token_recorded: z.boolean().describe('whether token_usage was complete and is recorded'),
});

export const heartbeatBody = z.object({
  connection_id: text(200).nullish(),
  token_usage: z
    .unknown()
    .optional()
    .describe('{model, inputTokens, outputTokens, taskId?}; ignored when it is incomplete'),
});

export const tokenUsage = z.object({
  model: filledText(200),
  inputTokens: z.int().nonnegative(),
  outputTokens: z.int().nonnegative(),
  taskId: z.int().positive().nullish().catch(null),
});

export const wakeBody = z.object({
  reason: text(2_000).nullish(),
  message: text(2_000).nullish().describe('alias of reason'),
});
export const wakeAnswer = z.object({
  success: z.literal(true),
  message: z.string().describe('what the agent is asked to do'),
  session_key: z.string().nullable(),
});

// --- Memory -----------------------------------------------------------------------------------------------------------

/** What GET answers besides the keys that the owner chose. */
export const memoryAnswer = z.looseObject({
  agent: agentHeader,
  working_memory: z.string(),
  source: z.enum(['database', 'none']),
  updated_at: unixSeconds,
  size: z.int().describe('characters'),
});
export const memoryBody = z
  .looseObject({
    working_memory: z.string().nullish().describe('missing: empty'),
    append: z
      .boolean()
      .nullish()
      .describe(
        'true: the text is added at the end under a heading with the time, other keys are merged; default false',
      ),
  })
  // How much it may be is counted with what is there already.
  .superRefine(storable({ characters: Number.POSITIVE_INFINITY }));
export type MemoryBody = z.infer<typeof memoryBody>;

/** Of an answer: these keys of a body say nothing new. */
const ANSWERED = ['working_memory', 'append', ...Object.keys(memoryAnswer.shape)];

/** The keys that the owner of a memory keeps besides the text. */
export const memoryFields = (body: MemoryBody): Record<string, unknown> =>
  Object.fromEntries(Object.entries(body).filter(([key]) => !ANSWERED.includes(key)));

export const memoryPutAnswer = z.object({
  success: z.literal(true),
  message: z.string(),
  working_memory: z.string(),
  saved_to_workspace: z.literal(false),
  updated_at: unixSeconds,
  size: z.int(),
});
export const memoryDeleteAnswer = z.object({
  success: z.literal(true),
  message: z.string(),
  working_memory: z.literal(''),
  updated_at: unixSeconds,
});

// --- Soul -------------------------------------------------------------------------------------------------------------

export const soulAnswer = z.object({
  agent: agentHeader,
  soul_content: z.string(),
  source: z.enum(['database', 'none']),
  available_templates: z.array(z.string()),
  updated_at: unixSeconds,
});

const templateName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'must be 1 to 64 letters, digits, hyphens or underscores');

export const soulBody = z
  .object({
    soul_content: text(200_000).optional().describe('required unless template_name is given'),
    template_name: templateName.nullish().describe('load this template instead; placeholders are filled in'),
  })
  .refine((body) => body.soul_content !== undefined || body.template_name, {
    path: ['soul_content'],
    message: 'is required: send the text, or the name of a template in template_name',
  });
export const soulPutAnswer = z.object({
  success: z.literal(true),
  message: z.string(),
  soul_content: z.string(),
  saved_to_workspace: z.literal(false),
  updated_at: unixSeconds,
});

export const soulTemplatesQuery = z.object({ template: templateName.optional() });
export const soulTemplatesAnswer = z.union([
  z.object({ templates: z.array(z.object({ name: z.string(), description: z.string(), size: z.int() })) }),
  z.object({ template_name: z.string(), content: z.string() }),
]);

// --- Messages ---------------------------------------------------------------------------------------------------------

/** Characters: what is not screened is not taken. */
export const MAX_MESSAGE = 50_000;

export const messageBody = z
  .object({
    from: filledText(200),
    to: filledText(100),
    content: text(MAX_MESSAGE).optional(),
    message: text(MAX_MESSAGE).optional().describe('alias of content'),
    type: filledText(100).optional().describe('default text'),
  })
  .refine((body) => (body.content ?? body.message ?? '').trim() !== '', {
    path: ['content'],
    message: 'is required and must not be empty',
  });
export const messageAnswer = z.object({ success: z.literal(true), id: z.int() });

export const commsQuery = z.object({
  agent: filterParam.refine(isStorable, UNSTORABLE_TEXT).describe('sender or recipient'),
  since: secondsParam.describe('only messages after this moment, Unix seconds'),
  limit: limitParam(50, 200),
  offset: offsetParam,
});
export type CommsQuery = z.infer<typeof commsQuery>;

export const commsAnswer = z.object({
  messages: z.array(messageSchema).describe('the latest, oldest first'),
  total: z.int(),
  graph: z.object({
    edges: z.array(
      z.object({ from_agent: z.string(), to_agent: z.string(), message_count: z.int(), last_message_at: unixSeconds }),
    ),
    agentStats: z.array(z.object({ agent: z.string(), sent: z.int(), received: z.int() })),
  }),
  source: z.object({ mode: z.enum(['empty', 'live']), seededCount: z.int(), liveCount: z.int() }),
});

// --- Gateway import and adapters --------------------------------------------------------------------------------------

export const syncAnswer = z.object({
  synced: z.int(),
  created: z.int(),
  updated: z.int(),
  agents: z.array(z.object({ id: z.string(), name: z.string(), action: z.enum(['created', 'updated', 'unchanged']) })),
  message: z.string().optional().describe('why there was nothing to import'),
});
export const syncPreviewAnswer = z.object({
  inConfig: z.int(),
  inMC: z.int(),
  newAgents: z.array(z.string()),
  updatedAgents: z.array(z.string()),
  onlyInMC: z.array(z.string()),
});

export const ADAPTERS = ['generic', 'crewai', 'langgraph', 'autogen', 'claude-sdk'] as const;
export const ADAPTER_ACTIONS = ['register', 'heartbeat', 'report', 'assignments', 'disconnect'] as const;

const adapterId = z
  .union([filledText(200), z.int().transform(String)], { error: 'must be a text or a whole number' })
  .meta({ override: { type: ['string', 'integer'] } });

/** What each action of an adapter takes. */
export const adapterPayloads = {
  register: z.object({ agentId: adapterId, name: filledText(200), metadata: storableObject.optional() }),
  heartbeat: z.object({
    agentId: adapterId,
    status: filledText(100).default('online'),
    metrics: storableObject.optional(),
  }),
  report: z.object({
    taskId: adapterId,
    agentId: adapterId,
    progress: z.number().default(0),
    status: filledText(100).default('in_progress'),
    output: storableValue.optional(),
  }),
  assignments: z.object({ agentId: adapterId }),
  disconnect: z.object({ agentId: adapterId }),
} as const;

export const adapterBody = z.object({
  framework: z.enum(ADAPTERS, { error: `must be one of ${ADAPTERS.join(', ')}` }),
  action: z.enum(ADAPTER_ACTIONS, { error: `must be one of ${ADAPTER_ACTIONS.join(', ')}` }),
  payload: jsonObject
    .optional()
    .describe('register: agentId, name, metadata; heartbeat: agentId, status, metrics; report: taskId, agentId, …'),
});

export const adaptersAnswer = z.object({ adapters: z.array(z.string()) });
export const adapterPostAnswer = z.union([
  z.object({ ok: z.literal(true), action: z.string(), framework: z.string() }),
  z.object({
    assignments: z.array(z.object({ taskId: z.string(), description: z.string(), priority: z.int() })),
    framework: z.string(),
  }),
]);
