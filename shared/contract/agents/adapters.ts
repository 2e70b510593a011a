/** Reports from framework adapters about their agents. */
import { z } from 'zod';
import { jsonObject } from '../common.ts';
import { filledText, storableObject, storableValue } from '../storable.ts';

export const ADAPTERS = ['generic', 'crewai', 'langgraph', 'autogen', 'claude-sdk'] as const;
export const ADAPTER_ACTIONS = ['register', 'heartbeat', 'report', 'assignments', 'disconnect'] as const;

const adapterId = z
  .union([filledText(200), z.int().transform(String)], { error: 'must be a string or a whole number' })
  .meta({ override: { type: ['string', 'integer'] } });

/** The payload of each action. */
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

export const adaptersResponse = z.object({ adapters: z.array(z.string()) });
export const adapterPostResponse = z.union([
  z.object({ ok: z.literal(true), action: z.string(), framework: z.string() }),
  z.object({
    assignments: z.array(z.object({ taskId: z.string(), description: z.string(), priority: z.int() })),
    framework: z.string(),
  }),
]);
