/**
 * Reads of the past: `?as_of=` on a GET that reads from read models, with a log position or a time. The response is the
 * one that the service would have given right after the event at that position. Permissions are those of now, not of
 * the past.
 */
import { createHash } from 'node:crypto';
import { RFC_3339 } from '../../shared/contract/history/events.ts';
import { forbidden, invalid } from '../../shared/errors.ts';
import type { Identity } from '../../shared/identity.ts';
import { BEGINNING, type Position } from '../../shared/ports/event-log.ts';
import type { Moment } from '../../shared/ports/history/events.ts';
import type { Services } from '../services.ts';
import { pastOf } from '../stream/past.ts';
import type { RequestContext } from './context.ts';
import { sendContent } from './errors.ts';
import { hasPast, type Route, type RouteResponse } from './route.ts';

/** A moment as given in a request. */
type AsOf = { readonly position: number } | { readonly time: number };

/** Why a call cannot read the past; undefined if it can. */
export function pastFault(route: Route, query: unknown): string | undefined {
  const { method, noPast = 'this call shows nothing that is kept' } = route;
  if (method !== 'get') return 'a write has no past';
  if (typeof route.noPast === 'function') return route.noPast(query);
  return hasPast(route) ? undefined : String(noPast);
}

/** The moment that a parameter names; undefined: it is neither a position nor a time. */
function readAsOf(text: unknown): AsOf | undefined {
  if (typeof text === 'string') {
    if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text))) return { position: Number(text) };
    const time = RFC_3339.test(text) ? Date.parse(text) : Number.NaN;
    if (!Number.isNaN(time)) return { time };
  }
  return undefined;
}

/**
 * @param name of the parameter
 *
 * @throws AppError 400 unless it is a moment within the log; the message gives the range
 */
export async function momentOf(
  { logIndex, readModels, now }: Pick<Services, 'logIndex' | 'readModels' | 'now'>,
  text: unknown,
  name = 'as_of',
  range = 'a position',
): Promise<Moment> {
  const asOf = readAsOf(text);
  const isPast = asOf && ('time' in asOf ? asOf.time <= now() : await readModels.has(asOf.position));
  const moment = isPast ? await logIndex.momentAt(asOf) : undefined;
  if (moment) return moment;
  const ends = await logIndex.ends();
  if (!ends) throw invalid(`${name}: the log has no events yet`);
  const time = (at: number) => new Date(at).toISOString();
  throw invalid(
    `${name}: must be ${range} from ${ends.first.position} to ${ends.last.position}, or a time in RFC 3339 from ${time(ends.first.at)} to now`,
  );
}

/**
 * The position at which a comparison starts: that of a moment, or 0, which is before the first event.
 *
 * @throws AppError 400, as `momentOf`
 */
export async function startOf(parts: Parameters<typeof momentOf>[0], text: unknown): Promise<Position> {
  if (typeof text === 'string' && /^0+$/.test(text)) return BEGINNING;
  return (await momentOf(parts, text, 'from', '0 (before the first event), a position')).position;
}

/**
 * The services of a request about the past: the same queries at that moment, with its time as the current time. Only
 * admins see what was deleted since.
 */
export const servicesAt = (services: Services, moment: Moment, { role }: Pick<Identity, 'role'>): Services =>
  Object.assign(Object.create(services) as Services, services.queriesAt(moment, role === 'admin'));

/**
 * Callers who are not admins read the past as far as they could follow it in the event stream: `retention.stream_days`,
 * and an agent's key not before it was issued.
 *
 * @throws AppError 403 for an earlier moment
 */
export async function checkReach(services: Services, identity: Identity, { position, at }: Moment): Promise<void> {
  const past = await pastOf(services, identity);
  if (past === undefined || (position >= past.after && at >= past.notBefore)) return;
  throw forbidden(
    `as_of: you may read the past back to ${new Date(past.from).toISOString()}, and this moment is before that; only admins may read further back.`,
  );
}

/** Sets the header that names the moment of a response. */
export function showMoment({ res }: RequestContext, { position }: Moment): void {
  res.setHeader('X-Signalbox-Position', position);
  res.setHeader('X-Signalbox-As-Of', position);
}

/**
 * Sends a response about the past. The past does not change, but clients must revalidate the response: a person may
 * have been erased since, and permissions are those of now.
 */
export function sendPast({ req, res }: RequestContext, response: RouteResponse): void {
  const { status = 200, body, text, headers } = response;
  for (const [name, value] of Object.entries(headers ?? {})) res.setHeader(name, value as string | string[]);
  const content = text ? text.content : JSON.stringify(body);
  const etag = `"${createHash('sha256').update(content).digest('base64url')}"`;
  res.setHeader('ETag', etag);
  res.setHeader('Cache-Control', 'private, no-cache');
  // Another caller of the same browser may see less.
  res.appendHeader('Vary', ['Cookie', 'Authorization', 'X-Api-Key']);
  if (status === 200 && req.headers['if-none-match'] === etag) {
    res.statusCode = 304;
    res.end();
    return;
  }
  sendContent(res, status, response);
}
