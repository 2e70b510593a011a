/**
 * The log position at which a request reads, and the position that its response shows.
 *
 * By default a read shows the head of the log at the time of its arrival. A caller may ask for less: a position that it
 * knows, such as that of its own write (`X-Signalbox-Min-Position`), or whatever the read model has
 * (`X-Signalbox-Consistency: eventual`).
 */
import { invalid } from '../../shared/errors.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import type { ReadAt, ReadModels } from '../../shared/ports/read-models.ts';
import type { RequestContext } from './context.ts';

/** @throws AppError 400 for invalid values of these headers, and for a position that the log does not have */
export async function readAtOf(
  { req, startedAt }: Pick<RequestContext, 'req' | 'startedAt'>,
  readModels: Pick<ReadModels, 'has'>,
): Promise<ReadAt> {
  const { 'x-signalbox-consistency': consistency, 'x-signalbox-min-position': text } = req.headers;
  if (consistency !== undefined && consistency !== 'eventual')
    throw invalid('X-Signalbox-Consistency must be "eventual", or left out for a response as of the end of the log.');
  if (text === undefined) return consistency === 'eventual' ? {} : { since: startedAt };
  const position = /^\d{1,16}$/.test(String(text)) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(position))
    throw invalid('X-Signalbox-Min-Position must be a position from the header X-Signalbox-Position of a response.');
  if (await readModels.has(position)) return { position };
  throw invalid(
    `There is no position ${position} in the log yet. Send a position from the header X-Signalbox-Position of a response.`,
  );
}

/**
 * Sets the header with the position of a response: the position of a read, or the last event of a write.
 *
 * @param isExact false: parts of the response may be of later positions
 */
export function showPosition(
  { res }: Pick<RequestContext, 'res'>,
  position: Position | undefined,
  isExact = true,
): void {
  if (position === undefined || res.headersSent) return;
  res.removeHeader(isExact ? AT_LEAST : EXACT);
  res.setHeader(isExact ? EXACT : AT_LEAST, position);
}

/** Sets the header with the position of a call within this request. */
export function passPosition({ res }: Pick<RequestContext, 'res'>, headers: Readonly<Record<string, unknown>>): void {
  for (const name of [EXACT, AT_LEAST]) {
    const position = headers[name.toLowerCase()];
    if (position !== undefined) res.setHeader(name, String(position));
  }
}

const EXACT = 'X-Signalbox-Position';
const AT_LEAST = 'X-Signalbox-Position-At-Least';
