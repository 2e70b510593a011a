/** Requests and responses of agents: the records, and creating, changing, deleting and hiding them. */
import { z } from 'zod';
import { filterParam, jsonObject, limitParam, offsetParam, unixSeconds } from '../common.ts';
import { filledText, isStorable, nameFilter, nameText, storableObject, text, UNSTORABLE_TEXT } from '../storable.ts';

export const AGENT_STATUSES = ['online', 'offline', 'busy', 'idle', 'error'] as const;
export const RUNTIME_TYPES = ['hermes', 'claude', 'codex', 'custom'] as const;

/** How a path refers to an agent: by id or by name. */
export type AgentRef = { readonly id: number } | { readonly name: string };

const NUMBER = /^-?\d+$/;
const agentRef = z
  .string()
  .refine(isStorable, UNSTORABLE_TEXT)
  .refine(
    (value) => !NUMBER.test(value) || (Number.isSafeInteger(Number(value)) && Number(value) > 0),
    'must be a positive whole number, or the name of an agent',
  )
  .transform((value): AgentRef => (NUMBER.test(value) ? { id: Number(value) } : { name: value.normalize('NFC') }))
  .meta({ override: { type: 'string' } })
  .describe('id of the agent, or its name, percent-encoded');

export const agentParams = z.object({ id: agentRef });

// --- Records ----------------------------------------------------------------------------------------------------------

export const taskStatsSchema = z
  .object({
    total: z.int(),
    assigned: z.int(),
    in_progress: z.int(),
    quality_review: z.int(),
    done: z.int(),
    completed: z.int().describe('same as `done`'),
  })
  .meta({ id: 'TaskStats' });
export type TaskStats = z.infer<typeof taskStatsSchema>;

export const agentSchema = z
  .object({
    id: z.int(),
    name: z.string(),
    role: z.string(),
    status: z.string().describe('online, offline, busy, idle or error, or any text set by an update by id'),
    session_key: z.string().nullable(),
    soul_content: z.string().nullable(),
    working_memory: z.string(),
    config: jsonObject,
    last_seen: unixSeconds.nullable(),
    last_activity: z.string().nullable(),
    created_at: unixSeconds,
    updated_at: unixSeconds,
    source: z.string().describe('manual, local or gateway'),
    hidden: z.int().describe('1: hidden from the default list'),
    runtime_type: z.string().nullable(),
    content_hash: z.null(),
    workspace_path: z.null(),
    workspace_id: z.int(),
  })
  .meta({ id: 'Agent' });
export type AgentRecord = z.infer<typeof agentSchema>;

export const agentWithTasksSchema = agentSchema.extend({ taskStats: taskStatsSchema }).meta({ id: 'AgentWithTasks' });

/** Identifies the agent in responses about its heartbeats, memory, soul and so on. */
export const agentHeader = agentSchema.pick({ id: true, name: true, role: true });

export const agentResponse = z.object({ agent: agentSchema });

// --- List -------------------------------------------------------------------------------------------------------------

export const agentsQuery = z.object({
  status: filterParam.refine(isStorable, UNSTORABLE_TEXT).describe('exact'),
  role: nameFilter.describe('exact'),
  show_hidden: z.string().optional().describe('`true`: include hidden agents'),
  limit: limitParam(50, 200),
  offset: offsetParam,
});
export type AgentsQuery = z.infer<typeof agentsQuery>;

export const agentsResponse = z.object({
  agents: z.array(agentWithTasksSchema),
  total: z.int().describe('number of agents that match the filters'),
  page: z.int().describe('from 1'),
  limit: z.int(),
});

// --- Create and change ------------------------------------------------------------------------------------------------

const status = z.enum(AGENT_STATUSES);
const runtimeType = z.enum(RUNTIME_TYPES);

export const createAgentBody = z.object({
  name: nameText(100).describe('unique in the workspace, among its agents and users'),
  role: nameText(100),
  session_key: text(200).nullish().describe('unique in the deployment'),
  soul_content: text(50_000).nullish(),
  status: status.optional().describe('default offline'),
  config: storableObject.optional(),
  template: text(100)
    .nullish()
    .describe('orchestrator, developer, specialist-dev, reviewer, researcher, content-creator, security-auditor'),
  gateway_config: storableObject
    .optional()
    .describe('takes precedence over config; with a template, overrides some of its values'),
  write_to_gateway: z.boolean().optional().describe('also write the agent to the stored gateway configuration'),
  runtime_type: runtimeType.nullish(),
});

export const createAgentResponse = z.object({
  agent: agentWithTasksSchema,
  warning: z.string().optional().describe('why the gateway configuration was not written'),
});

export const updateByNameBody = z.object({
  name: nameText(100).describe('selects the agent'),
  status: status.optional().describe('also counts as a sign of life: updates last_seen'),
  last_activity: text(10_000).optional(),
  config: storableObject.optional().describe('replaces the whole config'),
  session_key: text(200).nullish(),
  soul_content: text(50_000).nullish(),
  role: nameText(100).optional(),
  runtime_type: z
    .union([runtimeType, z.literal('')])
    .nullish()
    .describe('empty or null clears it'),
});

export const updateByIdBody = z.object({
  name: nameText(100).optional(),
  role: nameText(100).optional(),
  status: filledText(100).optional().describe('any text'),
  config: storableObject.optional().describe('replaces the whole config'),
  session_key: text(200).nullish(),
  soul_content: text(50_000).nullish(),
  runtime_type: z
    .union([runtimeType, z.literal('')])
    .nullish()
    .describe('empty or null clears it'),
  gateway_config: storableObject.optional().describe('its top-level keys are merged into the config'),
  write_to_gateway: z
    .boolean()
    .optional()
    .describe('default: true if gateway_config is given and a gateway configuration is stored'),
});

export const updateByIdResponse = z.object({ success: z.literal(true), agent: agentSchema });

export const deleteAgentBody = z.object({ remove_workspace: z.boolean().optional() });
export const deleteAgentResponse = z.object({
  success: z.literal(true),
  deleted: z.string().describe('name of the agent'),
  remove_workspace: z.boolean(),
  warning: z.string().optional(),
});

export const hideResponse = z.object({ success: z.literal(true), agent_id: z.int(), hidden: z.boolean() });
