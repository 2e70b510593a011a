/** The log over time: how many events fall into each part of a span. */
import { z } from 'zod';
import { limitParam, unixSeconds } from '../common.ts';
import { timeParam } from './events.ts';

export const timelineQuery = z.object({
  since: timeParam('from').describe('beginning of the span; RFC 3339 or Unix seconds. By default, the first event'),
  until: timeParam('to').describe('end of the span; by default, now'),
  bins: limitParam(160, 400).describe('number of parts'),
});
export type TimelineQuery = z.infer<typeof timelineQuery>;

export const timelineResponse = z.object({
  since: unixSeconds.describe('beginning of the first part'),
  until: unixSeconds.describe('end of the last part'),
  first: unixSeconds.nullable().describe('time of the first event of the log; null for an empty log'),
  bins: z
    .array(
      z.object({
        at: unixSeconds.describe('beginning of the part'),
        count: z.int().describe('events in it'),
        position: z.int().describe('of the last event up to its end; 0: there is none'),
      }),
    )
    .describe('parts of equal length, oldest first'),
});
export type TimelineResponse = z.infer<typeof timelineResponse>;
