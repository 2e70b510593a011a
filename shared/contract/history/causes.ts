/** The causes and effects of an event. */
import { z } from 'zod';
import { CHANNELS } from '../../events/metadata.ts';
import { unixSeconds } from '../common.ts';
import { eventId, historyEventSchema } from './events.ts';

/** The id of a webhook message contains that of the event. */
const OF_MESSAGE = /^msg_([0-9a-f-]{36})_[a-z_-]+$/;

/** An event, or a webhook message that was sent because of it. */
export const causesParams = z.object({
  id: z
    .string()
    .transform((id) => OF_MESSAGE.exec(id)?.[1] ?? id)
    .pipe(eventId)
    .meta({ override: { type: 'string' } }),
});

/** Maximum number of events shown as effects. */
export const MAX_EFFECTS = 1_000;

const actor = historyEventSchema.shape.actor;

const first = z.object({
  kind: z
    .enum(['request', 'schedule', 'command line', 'first start', 'unknown'])
    .describe('what started it; `unknown`: not in the log'),
  id: z
    .string()
    .nullable()
    .describe('of the request (`X-Request-Id`), or of the run; its events have it as correlation'),
  at: unixSeconds.describe('of its first event in this chain'),
  actor,
  agent: z.int().nullable().describe('id of the agent that the caller spoke for'),
  ip: z.unknown().describe('address of the caller; sealed, unless `open=1`'),
  user_agent: z.string().nullable(),
  via: z.enum(CHANNELS).nullable().describe('`mcp`: the request was a tool call; null: another, or none'),
});

const event = z.object({ kind: z.literal('event'), ...historyEventSchema.shape });

const effect = historyEventSchema.pick({
  id: true,
  position: true,
  index: true,
  type: true,
  stream: true,
  revision: true,
  at: true,
  actor: true,
});

const effects = effect
  .extend({
    get effects() {
      return z.array(effects);
    },
  })
  .meta({ id: 'HistoryEffect' });
export type HistoryEffect = z.infer<typeof effects>;

export const causesResponse = z.object({
  event: historyEventSchema,
  causes: z
    .array(z.discriminatedUnion('kind', [event, first]))
    .describe(
      'nearest first, up to the request or the schedule that began it; they end at 4 MB (400 kB for MCP), and the causes of the last one then show the rest',
    ),
  effects: z.array(effects).describe('direct and indirect effects of the event, in log order'),
  effects_complete: z.boolean().describe(`false: only the first ${MAX_EFFECTS} are shown`),
  causes_complete: z.boolean().describe('false: the chain goes on behind the last event that is shown'),
});
export type CausesResponse = z.infer<typeof causesResponse>;
export type FirstCause = z.infer<typeof first>;
