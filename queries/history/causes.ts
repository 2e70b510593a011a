/** The causes of an event and its effects: the chain of causes upwards, and the tree of effects. */
import { PAGE_BYTES } from '../../shared/contract/common.ts';
import {
  type CausesResponse,
  type FirstCause,
  type HistoryEffect,
  MAX_EFFECTS,
} from '../../shared/contract/history/causes.ts';
import type { HistoryEvent } from '../../shared/contract/history/events.ts';
import { CHANNELS } from '../../shared/events/metadata.ts';
import type { LogEntry } from '../../shared/ports/history/events.ts';
import { type HistoryReads, historyEvent, outlineOf, recordsOf } from './events.ts';

/** Maximum length of a chain; a longer one is an error. */
const MAX_CAUSES = 1_000;

/** The meaning of the parts of the service that act by themselves. */
const BEGINNINGS: Readonly<Record<string, FirstCause['kind']>> = {
  scheduler: 'schedule',
  cli: 'command line',
  'first start': 'first start',
};

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** The beginning of a chain, according to its first event. */
function beginningOf({ at, actor, meta }: HistoryEvent): FirstCause {
  const request = textOf(meta.requestId);
  const itself = actor.type === 'system' ? BEGINNINGS[actor.name] : undefined;
  return {
    kind: request === null ? (itself ?? 'unknown') : 'request',
    // Events of one run share its id.
    id: request ?? textOf(meta.causationId) ?? textOf(meta.correlationId),
    at,
    actor,
    agent: typeof meta.agent === 'number' ? meta.agent : null,
    ip: meta.ip ?? null,
    user_agent: textOf(meta.userAgent),
    via: CHANNELS.find((channel) => channel === meta.via) ?? null,
  };
}

/** The events that caused one, nearest first. */
async function causesOf(reads: HistoryReads, entry: LogEntry): Promise<LogEntry[]> {
  const causes: LogEntry[] = [];
  for (let last = entry; last.causation !== null && causes.length < MAX_CAUSES; ) {
    const cause = await reads.index.find(last.causation);
    // A later event cannot be a cause.
    if (!cause || cause.number >= last.number) break;
    causes.push(cause);
    last = cause;
  }
  return causes;
}

async function effectsOf(
  { index }: HistoryReads,
  id: string,
): Promise<Pick<CausesResponse, 'effects' | 'effects_complete'>> {
  const root: HistoryEffect[] = [];
  const shown = new Map([[id, root]]);
  let left = MAX_EFFECTS;
  for (let above: readonly string[] = [id]; above.length > 0; ) {
    const found = await index.causedBy(above, left + 1);
    for (const entry of found.slice(0, left)) {
      // An id that is in two streams is shown once.
      if (shown.has(entry.id)) continue;
      const effects: HistoryEffect[] = [];
      shown.get(entry.causation ?? '')?.push({ ...outlineOf(entry), effects });
      shown.set(entry.id, effects);
    }
    if (found.length > left) return { effects: root, effects_complete: false };
    left -= found.length;
    above = found.map((entry) => entry.id);
  }
  return { effects: root, effects_complete: true };
}

/** @param pageBytes of the causes, as JSON; the first one is always there. @throws AppError 404 */
export async function historyCauses(
  reads: HistoryReads,
  id: string,
  open: boolean,
  pageBytes = PAGE_BYTES,
): Promise<CausesResponse> {
  const { entry, event } = await historyEvent(reads, id, open);
  const entries = await causesOf(reads, entry);
  const causes: HistoryEvent[] = [];
  let bytes = 0;
  for (let isFull = false; !isFull && causes.length < entries.length; )
    for (const cause of await recordsOf(reads, entries.slice(causes.length), open)) {
      bytes += Buffer.byteLength(JSON.stringify(cause));
      isFull = causes.length > 0 && bytes > pageBytes;
      if (isFull) break;
      causes.push(cause);
    }
  const isComplete = causes.length === entries.length;
  return {
    event,
    causes: [
      ...causes.map((cause) => ({ kind: 'event' as const, ...cause })),
      ...(isComplete ? [beginningOf(causes.at(-1) ?? event)] : []),
    ],
    ...(await effectsOf(reads, entry.id)),
    causes_complete: isComplete,
  };
}
