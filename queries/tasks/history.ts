/** The history of one task, from its own stream: actor, change, time and cause. */

import type { HistoryEntry } from '../../shared/contract/tasks/history.ts';
import type { EventStore } from '../../shared/event-store.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { activityOf } from '../../shared/events/monitoring/activities.ts';
import { notificationOf } from '../../shared/events/monitoring/notifications.ts';
import { reviewedBy } from '../../shared/events/quality/reviews.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { seconds } from '../../shared/time.ts';

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

/**
 * A page of a stream's history, newest first.
 *
 * @param before revision: only older events
 * @param upTo position of the last event to show; undefined: all are shown
 */
export async function historyOf(
  store: EventStore,
  stream: string,
  { limit, before }: { readonly limit: number; readonly before: number | undefined },
  upTo: Position | undefined,
): Promise<{ readonly history: readonly HistoryEntry[]; readonly history_before: number | null }> {
  if (before === 0) return { history: [], history_before: null };
  const history: HistoryEntry[] = [];
  const from = before === undefined ? {} : { from: before - 1 };
  const most = upTo === undefined ? { limit } : {};
  for await (const batch of store.log.readStream(stream, { direction: 'backwards', ...most, ...from })) {
    const shown = upTo === undefined ? batch : batch.filter(({ position }) => position <= upTo);
    for (const event of shown.slice(0, limit - history.length)) history.push(entryOf(await store.decode(event)));
    if (history.length === limit) break;
  }
  const oldest = history.at(-1)?.revision ?? 0;
  return { history, history_before: oldest > 0 ? oldest : null };
}
