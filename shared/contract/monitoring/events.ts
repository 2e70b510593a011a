/** The live stream of events. */
import { z } from 'zod';
import { filterParam, jsonObject } from '../common.ts';

const frameId = z
  .string()
  .regex(/^(?:\d{1,16}(\.\d{1,4})?)?$/, 'must be the id of an earlier frame')
  .optional();

export const eventsQuery = z.object({
  since: z
    .string()
    .regex(/^\d{1,16}(\.\d{1,4})?$/, 'must be the id of an earlier frame')
    .optional()
    .describe('resume after the frame with this id; the header Last-Event-ID does the same and takes precedence'),
  lastEventId: frameId.describe(
    'the same, as polyfills of EventSource send it; `Last-Event-ID` also works as a parameter',
  ),
  'Last-Event-ID': frameId.meta({ undocumented: true }),
  kind: filterParam.describe('only frames of these types, separated by commas'),
});

export const streamFrameSchema = z.object({
  type: z.string(),
  data: jsonObject.nullable(),
  timestamp: z.int().describe('Unix milliseconds'),
});
