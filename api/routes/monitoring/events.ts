/** The live stream of events. */
import { eventsQuery, streamFrameSchema } from '../../../shared/contract/monitoring/events.ts';
import { AppError, invalid, UnknownPositionError } from '../../../shared/errors.ts';
import { defineRoute, HANDLED } from '../../http/route.ts';
import { parseCursor } from '../../stream/frames.ts';
import { pastOf } from '../../stream/past.ts';

export const eventRoute = defineRoute({
  method: 'get',
  path: '/api/events',
  noPast: 'the stream has a past of its own: use since',
  summary: 'Stream live events (Server-Sent Events)',
  description:
    'Sends the frames of the caller’s workspace as events happen. Every frame has an id; `Last-Event-ID` or `since` resumes after it without a gap or a duplicate, across restarts and processes. Callers who are not admins resume as far back as the setting `retention.stream_days` says, and the key of an agent not before it was issued: with an older id the stream begins there, and the `connected` frame has the time as `data.from`, Unix milliseconds. A comment line every 15 s keeps the connection alive. `audit.security` and `security.event` are for admins. A caller that speaks for an agent and is no admin gets the frames about tasks that are assigned to that agent, or that it created with its key, and its own notifications; a viewer gets its own notifications. When the caller’s credential becomes invalid, the stream ends within seconds.',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  query: eventsQuery,
  refuses: [429],
  responses: { 200: { description: 'A stream of frames', type: 'text/event-stream', schema: streamFrameSchema } },
  async handle({ query, identity, context, services }) {
    const header = context.req.headers['last-event-id'];
    const given = [header, query.since, query.lastEventId, query['Last-Event-ID']];
    // Polyfills send an empty id before the first frame.
    const asked = given.find((id): id is string => typeof id === 'string' && id !== '');
    const after = asked === undefined ? undefined : parseCursor(asked);
    if (asked !== undefined && !after) throw invalid('Last-Event-ID must be the id of an earlier frame.');
    const { credential } = context;
    if (!credential) throw new Error('a stream was requested without a credential');
    const kinds = query.kind?.split(',').map((kind) => kind.trim());
    try {
      await services.stream.serve(context.res, {
        identity,
        credential,
        ip: context.ip,
        kinds: kinds && new Set(kinds),
        after,
        past: after && (await pastOf(services, identity)),
      });
    } catch (error) {
      if (error instanceof AppError && error.status === 429) services.securityEvents.rateLimitHit(context, 'streams');
      if (!(error instanceof UnknownPositionError)) throw error;
      throw new AppError(
        400,
        `There is no frame ${asked} in this log, which has been moved or restored since. Load the lists again and connect without an id.`,
        { code: 'UNKNOWN_EVENT_ID', cause: error },
      );
    }
    return HANDLED;
  },
});
