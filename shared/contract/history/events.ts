/** Events of the log, as they are stored. */
import { z } from 'zod';
import { ACTOR_TYPES } from '../../events/metadata.ts';
import { filterParam, jsonObject, limitParam, unixSeconds } from '../common.ts';
import { isStorable, nameFilter } from '../storable.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The id of an event, in any case. */
export const eventId = z
  .string()
  .regex(UUID, 'must be the id of an event, a UUID')
  .transform((id) => id.toLowerCase())
  .meta({ override: { type: 'string', format: 'uuid' } });

/** A time in either form, as Unix milliseconds of its beginning and its end. */
function timeOf(text: string): { readonly from: number; readonly to: number } | undefined {
  if (/^\d{1,11}$/.test(text)) return { from: Number(text) * 1_000, to: Number(text) * 1_000 + 999 };
  if (!RFC_3339.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : { from: at, to: at };
}

export const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/;
const TIME = 'must be a time: RFC 3339, such as 2026-01-31T12:00:00Z, or Unix seconds';
/** A time in a query, as Unix milliseconds. A whole second extends to its end. */
export const timeParam = (end: 'from' | 'to') =>
  z
    .string()
    .refine((text) => timeOf(text) !== undefined, TIME)
    .transform((text) => timeOf(text)?.[end])
    .optional()
    .meta({ override: { type: 'string' } });

/** A position in a query. */
const positionParam = z
  .string()
  .refine((text) => /^\d{1,30}$/.test(text), 'must be a position of the log, a whole number from 0')
  .transform(Number)
  .optional()
  .meta({ override: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } });

const exactParam = filterParam.refine((text) => text === undefined || isStorable(text), 'is not a text that is stored');

export const openParam = z
  .string()
  .optional()
  .transform((value) => value === '1')
  .meta({ override: { type: 'string', enum: ['1'] } })
  .describe(
    '`1`: the fields of people, such as addresses, are readable; of erased people they are null. Secrets stay sealed',
  );

export const historyEventsQuery = z.object({
  stream: exactParam.describe('name of a stream, such as `agent-1-7`'),
  type: exactParam.describe('type of the events, such as `TaskCreated`'),
  actor: nameFilter.describe(
    `name of the actor of the events, at that time; or type and id, such as \`agent:12\` (types: ${ACTOR_TYPES.join(', ')})`,
  ),
  correlation: exactParam.describe('id that all events with the same first cause share'),
  causation: exactParam.describe('id of the event, or of the request, that caused the events directly'),
  since: timeParam('from').describe('from this time on; RFC 3339 or Unix seconds'),
  until: timeParam('to').describe('up to this time'),
  after: positionParam.describe('only events after this position; `next_after` of a page gets the next one'),
  limit: limitParam(50, 1_000).describe('a page has fewer events if they are large'),
  open: openParam,
});
export type HistoryEventsQuery = z.infer<typeof historyEventsQuery>;

export const historyEventSchema = z
  .object({
    id: z.string(),
    position: z.int().describe('of the event in the log'),
    index: z.int().describe('number of the event in the log, from 0: its leaf in the tree'),
    type: z.string(),
    stream: z.string(),
    revision: z.int().describe('number of the event in its stream, from 0'),
    at: unixSeconds.describe('when it was written; `meta.at` has milliseconds'),
    actor: z.object({ type: z.string(), id: z.int(), name: z.string() }),
    data: jsonObject.describe('as stored: personal fields are sealed, unless `open=1`'),
    meta: jsonObject,
  })
  .meta({ id: 'HistoryEvent' });
export type HistoryEvent = z.infer<typeof historyEventSchema>;

export const historyEventsResponse = z.object({
  events: z.array(historyEventSchema).describe('in log order'),
  next_after: z.int().nullable().describe('`after` of the next page; null: there is none'),
});

export const historyEventParams = z.object({ id: eventId });
export const openQuery = z.object({ open: openParam });
