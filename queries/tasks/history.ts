/** The history of one task, from its own stream: actor, change, time and cause. */

import { PAGE_BYTES } from '../../shared/contract/common.ts';
import type { HistoryEntry } from '../../shared/contract/tasks/history.ts';
import type { EventStore } from '../../shared/event-store.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { activityOf } from '../../shared/events/monitoring/activities.ts';
import { notificationOf } from '../../shared/events/monitoring/notifications.ts';
import { reviewedBy } from '../../shared/events/quality/reviews.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { seconds } from '../../shared/time.ts';
import { nextPiece } from '../../shared/waiting.ts';

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The differences, by the field names of the record. */
function changesOf({ data }: DomainEvent): HistoryEntry['changes'] {
  const before = data.before;
  const after = data.after ?? data.task;
  if (!isFields(before) || !isFields(after)) return {};
  return Object.fromEntries(
    Object.keys(before)
      .filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]))
      .map((field) => [field, { from: before[field], to: after[field] }]),
  );
}

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

function entryOf(event: DomainEvent): HistoryEntry {
  const { data, meta, type, position, revision } = event;
  const definition = catalogue.get(type);
  const activity = definition && activityOf(definition, event);
  const notification = definition && notificationOf(definition, event);
  const notified = notification && `Notified ${notification.recipient}: ${notification.title}`;
  return {
    position,
    revision,
    at: seconds(meta.at),
    type,
    actor: activity?.actor ?? meta.actor.name,
    ...('review_id' in data && { reviewed_by: reviewedBy(event) }),
    actor_type: meta.actor.type,
    description: activity?.description ?? notified ?? definition?.doc ?? type,
    changes: changesOf(event),
    cause: textOf(data.cause) ?? textOf(data.trigger) ?? textOf(data.source),
    reason: textOf(data.reason) ?? textOf(data.notes) ?? textOf(data.error_message),
    request_id: meta.requestId,
    correlation_id: meta.correlationId,
  };
}

/** Events that are read at once: each of them may have a megabyte. */
const AT_ONCE = 20;
/** Bytes of an event after which other requests have their turn. */
const LARGE = 50_000;

/** Events of a stream, newest first. @param from revision; undefined: the newest one */
async function* newestFirst(log: EventStore['log'], stream: string, from: number | undefined) {
  for (let next = from; next === undefined || next >= 0; ) {
    const read: LoggedEvent[] = [];
    const options = { direction: 'backwards', limit: AT_ONCE, ...(next !== undefined && { from: next }) } as const;
    for await (const batch of log.readStream(stream, options)) read.push(...batch);
    yield* read;
    const last = read.at(-1);
    if (!last || read.length < AT_ONCE) return;
    next = last.revision - 1;
  }
}

/**
 * A page of a stream's history, newest first: it ends at the size of a page, with at least one event.
 *
 * @param page.before revision: only older events
 * @param upTo position of the last event to show; undefined: all are shown
 */
export async function historyOf(
  store: EventStore,
  stream: string,
  page: { readonly limit: number; readonly before: number | undefined; readonly bytes?: number | undefined },
  upTo: Position | undefined,
): Promise<{ readonly history: readonly HistoryEntry[]; readonly history_before: number | null }> {
  const { limit, before, bytes = PAGE_BYTES } = page;
  if (before === 0) return { history: [], history_before: null };
  const history: HistoryEntry[] = [];
  let left = bytes;
  for await (const event of newestFirst(store.log, stream, before === undefined ? undefined : before - 1)) {
    if (upTo !== undefined && event.position > upTo) continue;
    const entry = entryOf(await store.decode(event));
    const size = Buffer.byteLength(JSON.stringify(entry));
    left -= size;
    if (left < 0 && history.length > 0) break;
    history.push(entry);
    if (history.length === limit) break;
    if (size > LARGE) await nextPiece();
  }
  const oldest = history.at(-1)?.revision ?? 0;
  return { history, history_before: oldest > 0 ? oldest : null };
}
