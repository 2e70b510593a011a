/** The state of the service in numbers. */
import { z } from 'zod';
import { notInThePast } from '../common.ts';

export const STATUS_ACTIONS = ['overview', 'dashboard', 'health', 'models', 'gateway', 'capabilities'] as const;
export const statusQuery = z.object({ action: z.enum(STATUS_ACTIONS).optional().describe('default overview') });

const milliseconds = z.int().describe('Unix milliseconds');
const byStatus = z.object({ total: z.int(), byStatus: z.record(z.string(), z.int()) });

const overview = z.object({
  timestamp: milliseconds,
  uptime: notInThePast(
    z.int().describe('of the machine, milliseconds; 0 for callers of other tenants, as are memory and disk'),
  ),
  memory: notInThePast(z.object({ total: z.int(), used: z.int(), available: z.int() }).describe('MB')),
  disk: notInThePast(z.object({ total: z.string(), used: z.string(), available: z.string(), usage: z.string() })),
  sessions: z.object({ total: z.int(), active: z.int() }).describe('agents that have a session key; those not offline'),
  processes: z.array(z.string()).max(0).describe('always empty: the service does not inspect other processes'),
});

const dashboard = overview.extend({
  db: z.object({
    tasks: byStatus,
    agents: byStatus,
    audit: z.object({ day: z.int(), week: z.int(), loginFailures: z.int() }),
    activities: z.object({ day: z.int() }),
    notifications: z.object({ unread: z.int() }),
    pipelines: z.object({ active: z.int(), recentDay: z.int() }),
    backup: notInThePast(
      z
        .object({ name: z.string(), size: z.int(), age_hours: z.int() })
        .nullable()
        .describe('the newest; null if there is none, and for callers of other tenants'),
    ),
    dbSizeBytes: notInThePast(z.int().describe('0 for callers of other tenants')),
    webhookCount: z.int(),
  }),
});

export const CHECK_STATUSES = ['healthy', 'warning', 'critical', 'unhealthy', 'error'] as const;
const checkSchema = z.object({
  name: z.string(),
  status: z.enum(CHECK_STATUSES),
  message: z.string(),
  detail: z.record(z.string(), z.int()).optional(),
});
export type HealthCheck = z.infer<typeof checkSchema>;

const health = z.object({
  status: z.enum(['healthy', 'warning', 'degraded', 'unhealthy']),
  version: z.string(),
  uptime: z.number().describe('of the process, seconds'),
  checks: z.array(checkSchema).describe('for callers of other tenants only that of the database'),
  timestamp: milliseconds,
});

const models = z.object({
  models: z.array(
    z.object({
      alias: z.string(),
      name: z.string(),
      provider: z.string(),
      description: z.string(),
      costPerMTok: z.object({ input: z.number(), output: z.number() }).describe('USD per million tokens'),
    }),
  ),
});

const gateway = z.object({
  running: z.boolean(),
  port: z.int(),
  pid: z.null(),
  uptime: z.int(),
  version: z.null(),
  connections: z.int(),
  port_listening: z.boolean(),
});

const capabilities = z.object({
  gateway: z.boolean(),
  subscription: z.null(),
  subscriptions: z.record(z.string(), z.string()),
  processUser: notInThePast(z.string().describe('empty for callers of other tenants')),
  interfaceMode: z.string(),
  claudeSessions: z.int(),
});

export const statusResponse = z.union([dashboard, overview, health, models, gateway, capabilities]);

/** Alias, model, purpose, USD per million tokens in and out. */
const CATALOGUE: readonly (readonly [alias: string, name: string, about: string, input: number, output: number])[] = [
  ['haiku', 'anthropic/claude-haiku-4-5', 'fast and cheap', 1, 5],
  ['sonnet', 'anthropic/claude-sonnet-4-6', 'for most work', 3, 15],
  ['opus', 'anthropic/claude-opus-4-6', 'for the hardest work', 5, 25],
  ['gpt-4.1', 'openai/gpt-4.1', 'for most work', 2, 8],
  ['gpt-4.1-mini', 'openai/gpt-4.1-mini', 'fast and cheap', 0.4, 1.6],
  ['gpt-4.1-nano', 'openai/gpt-4.1-nano', 'the cheapest of its family', 0.1, 0.4],
  ['codex-mini', 'openai/codex-mini-latest', 'for code', 1.5, 6],
  ['gemini-2.5-pro', 'google/gemini-2.5-pro', 'for the hardest work', 1.25, 10],
  ['gemini-2.5-flash', 'google/gemini-2.5-flash', 'fast and cheap', 0.3, 2.5],
  ['deepseek', 'ollama/deepseek-r1:14b', 'runs locally', 0, 0],
  ['groq-fast', 'groq/llama-3.1-8b-instant', 'very fast', 0.05, 0.08],
  ['groq', 'groq/llama-3.3-70b-versatile', 'fast', 0.59, 0.79],
  ['kimi', 'moonshot/kimi-k2.5', 'for long texts', 0.6, 3],
  ['venice-llama-3.3-70b', 'venice/llama-3.3-70b', 'private', 0.7, 2.8],
  ['minimax', 'minimax/minimax-m2.1', 'cheap', 0.3, 1.2],
];

export const MODELS: z.infer<typeof models>['models'] = CATALOGUE.map(([alias, name, about, input, output]) => {
  const [provider = ''] = name.split('/');
  return { alias, name, provider, description: `${provider}: ${about}`, costPerMTok: { input, output } };
});
