/**
 * Changes of notifications. A change of several is recorded with their ids, so that a read model needs only the event.
 * The read model gives these ids, and a stream shared by all processes has the ids that others have just changed, so
 * each notification counts for one caller. A delivery is decided on the notification's own stream: of two concurrent
 * runs, one delivers it.
 */

import type { NotificationDirectory, PendingNotification, Some } from '../../queries/monitoring/notifications.ts';
import type { DeliveryError, DeliveryResult } from '../../shared/contract/monitoring/notifications.ts';
import { AppError } from '../../shared/errors.ts';
import { type DomainEvent, type EventDraft, type EventOf, firstOf } from '../../shared/events/define.ts';
import {
  notificationDeliveryCompleted,
  notificationForwarded,
  notificationRaised,
  notificationsDeleted,
  notificationsDelivered,
  notificationsRead,
} from '../../shared/events/monitoring/notifications.ts';
import type { Recipient } from '../../shared/identity.ts';
import { frontOf } from '../../shared/storable.ts';
import { DAY, seconds } from '../../shared/time.ts';
import { refuseInjection, screenText } from '../agents/injection.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';

/** Ids in one event. */
const BATCH = 1_000;
/** Concurrent deliveries. */
const AT_ONCE = 10;
/** Maximum number of characters in the text that says where a notification was delivered. */
const SAID = 200;
/** Kinds whose delivered text names the type. */
const TYPED = ['mention', 'assignment', 'due_date'];

export const notificationsStream = (workspace: number): string => `notifications-${workspace}`;
const streamOf = ({ origin }: CommandContext): string => notificationsStream(origin.workspace);

/** Ids of the last changes; more than are in flight at any time, before the read models show them. */
const REMEMBERED = 20_000;

interface MarkedState {
  readonly read: readonly number[];
  readonly delivered: readonly number[];
  readonly deleted: readonly number[];
}

const withLast = (ids: readonly number[], more: readonly number[]): readonly number[] =>
  [...ids, ...more].slice(-REMEMBERED);

export const markedDecider = defineDecider<MarkedState>({
  kind: 'list of changed notifications',
  initial: { read: [], delivered: [], deleted: [] },
  sizeOf: ({ read, delivered, deleted }) => (read.length + delivered.length + deleted.length) * 10,
  folds: [
    on(notificationsRead, (state, { data }) => ({ ...state, read: withLast(state.read, data.notification_ids) })),
    on(notificationsDelivered, (state, { data }) => ({
      ...state,
      delivered: withLast(state.delivered, data.notification_ids),
    })),
    on(notificationsDeleted, (state, { data }) => ({
      ...state,
      deleted: withLast(state.deleted, data.notification_ids),
    })),
  ],
});

/** One stream per day, so that a conflict never requires reading years of events. */
const markedStream = ({ origin }: CommandContext): string =>
  `notifications-${origin.workspace}-${Math.floor(seconds(Date.now()) / DAY)}`;

/** Records a change of those notifications that no other process has changed in the same way in the meantime. */
async function mark(
  commands: Commands,
  context: CommandContext,
  ids: readonly number[],
  how: { readonly changed: keyof MarkedState; readonly draft: (notificationIds: number[]) => EventDraft },
): Promise<readonly DomainEvent[]> {
  const { events } = await commands.execute(markedDecider, markedStream(context), context, (state) => {
    const changed = new Set(state[how.changed]);
    const fresh = ids.filter((id) => !changed.has(id));
    return fresh.length === 0 ? [] : [how.draft(fresh)];
  });
  return events;
}

const idsIn = (events: readonly DomainEvent[]): number =>
  events.reduce((sum, { data }) => sum + (data.notification_ids as number[]).length, 0);

/** Repeats `next` until it finds nothing more. */
async function inBatches(
  next: () => Promise<readonly number[]>,
  apply: (ids: readonly number[]) => Promise<void>,
): Promise<void> {
  for (;;) {
    const ids = await next();
    if (ids.length > 0) await apply(ids);
    if (ids.length < BATCH) return;
  }
}

/** Marks unread notifications as read. @returns their number */
export async function markRead(
  commands: Commands,
  context: CommandContext,
  directory: NotificationDirectory,
  which: Some,
): Promise<number> {
  const { workspace } = context.origin;
  let read = 0;
  await inBatches(
    () => directory.unread(workspace, which, BATCH),
    async (ids) => {
      const events = await mark(commands, context, ids, {
        changed: 'read',
        draft: (notificationIds) => notificationsRead.draft({ notification_ids: notificationIds }),
      });
      read += idsIn(events);
    },
  );
  return read;
}

/**
 * Marks notifications that a recipient has fetched as delivered.
 *
 * @returns the ids with their time of delivery, Unix seconds
 */
export async function markDelivered(
  commands: Commands,
  context: CommandContext,
  directory: NotificationDirectory,
  recipient: Recipient,
): Promise<ReadonlyMap<number, number>> {
  const delivered = new Map<number, number>();
  await inBatches(
    () => directory.undelivered(context.origin.workspace, recipient, BATCH),
    async (ids) => {
      const events = await mark(commands, context, ids, {
        changed: 'delivered',
        draft: (notificationIds) =>
          notificationsDelivered.draft({ recipient: recipient.name, notification_ids: notificationIds }),
      });
      for (const { data, meta } of events)
        for (const id of data.notification_ids as number[]) delivered.set(id, seconds(meta.at));
    },
  );
  return delivered;
}

/** Deletes notifications: those with the given ids, or the older ones of a recipient. @returns their number */
export async function deleteNotifications(
  commands: Commands,
  context: CommandContext,
  directory: NotificationDirectory,
  which: { readonly ids: readonly number[] } | { readonly recipient: string; readonly before: number },
): Promise<number> {
  const { workspace } = context.origin;
  let deleted = 0;
  await inBatches(
    () =>
      'ids' in which
        ? directory.existing(workspace, which.ids.slice(0, BATCH))
        : directory.older(workspace, which.recipient, which.before, BATCH),
    async (ids) => {
      const events = await mark(commands, context, ids, {
        changed: 'deleted',
        draft: (notificationIds) => notificationsDeleted.draft({ notification_ids: notificationIds, cause: 'request' }),
      });
      deleted += idsIn(events);
    },
  );
  return deleted;
}

/** Names of the rules that the text of a notification breaks; other users may have written the text. */
const rulesBrokenBy = ({ title, message }: PendingNotification): string[] =>
  screenText(`${title}\n${message}`).map(({ rule }) => rule);

/** The text for an agent. @param withheld broken rules, which are shown instead of the text */
export function renderedNotification(one: PendingNotification, withheld = rulesBrokenBy(one)): string {
  const texts =
    withheld.length === 0
      ? [`🔔 **${one.title}**`, one.message]
      : ['🔔 **Notification withheld**', `Its text breaks ${withheld.join(', ')} and is not handed to agents.`];
  return [
    ...texts,
    ...(TYPED.includes(one.type) ? [`Type: ${one.type}`] : []),
    ...(one.source_type !== null
      ? [`About: ${one.source_type}${one.source_id === null ? '' : ` ${one.source_id}`}`]
      : []),
    `${new Date(one.created_at * 1_000).toISOString().slice(0, 19).replace('T', ' ')} UTC`,
  ].join('\n');
}

export interface DeliveryState {
  readonly delivered: boolean;
}

export const deliveryDecider = defineDecider<DeliveryState>({
  kind: 'notification',
  initial: { delivered: false },
  folds: [on(notificationForwarded, () => ({ delivered: true }))],
});

const deliveryStream = (workspace: number, id: number): string => `notification-${workspace}-${id}`;

/** No event if it was already delivered. @param messageId of the message to the agent */
export function decideForward(
  state: DeliveryState,
  one: PendingNotification,
  messageId: number | undefined,
): EventDraft[] {
  if (state.delivered) return [];
  const { agent } = one;
  const withheld = agent ? rulesBrokenBy(one) : [];
  return [
    notificationForwarded.draft({
      ...(withheld.length > 0 && { withheld }),
      notification_id: one.id,
      recipient: one.recipient,
      notification_type: one.type,
      title: one.title,
      session_key: agent?.session_key ?? null,
      message:
        agent && messageId !== undefined
          ? { message_id: messageId, to_agent_id: agent.id, content: renderedNotification(one, withheld) }
          : null,
    }),
  ];
}

/** @throws AppError 404 */
function requireRecipient({ agent, isPerson, recipient }: PendingNotification): void {
  if (!agent && !isPerson) throw new AppError(404, `No agent and no user of this workspace is named ${recipient}.`);
}

/** Undefined if another run has delivered it in the meantime. @throws AppError 404 for an unknown recipient */
async function deliverOne(
  commands: Commands,
  context: CommandContext,
  one: PendingNotification,
): Promise<DeliveryResult | undefined> {
  requireRecipient(one);
  const messageId = one.agent ? await commands.counters.take('message') : undefined;
  const { events } = await commands.execute(
    deliveryDecider,
    deliveryStream(context.origin.workspace, one.id),
    context,
    (state) => decideForward(state, one, messageId),
    { fresh: true },
  );
  const event = firstOf(events, notificationForwarded) as EventOf<typeof notificationForwarded> | undefined;
  if (!event) return undefined;
  const { message } = event.data;
  const said = message
    ? `message ${message.message_id} in the inbox of ${one.recipient}`
    : 'in the list of notifications';
  return {
    notification_id: one.id,
    recipient: one.recipient,
    session_key: event.data.session_key,
    delivered_at: seconds(event.meta.at),
    status: 'delivered',
    stdout: frontOf(said, SAID),
  };
}

export interface Delivery {
  readonly processed: number;
  readonly results: readonly DeliveryResult[];
  readonly errors: readonly DeliveryError[];
}

/** Delivers undelivered notifications, oldest first. A failure of one does not stop the others. */
export async function deliverNotifications(
  commands: Commands,
  context: CommandContext,
  directory: NotificationDirectory,
  run: { readonly recipient: Recipient | undefined; readonly limit: number; readonly dry_run: boolean },
): Promise<Delivery> {
  const pending = await directory.pending(context.origin.workspace, run.recipient, run.limit);
  if (pending.length === 0) return { processed: 0, results: [], errors: [] };
  const results: DeliveryResult[] = [];
  const errors: DeliveryError[] = [];
  const take = async (one: PendingNotification): Promise<DeliveryResult | DeliveryError | undefined> => {
    try {
      return run.dry_run ? dryRunOf(one) : await deliverOne(commands, context, one);
    } catch (error) {
      if (!(error instanceof AppError) || error.status >= 500) throw error;
      return { notification_id: one.id, recipient: one.recipient, error: error.message };
    }
  };
  for (let at = 0; at < pending.length; at += AT_ONCE) {
    for (const one of await Promise.all(pending.slice(at, at + AT_ONCE).map(take))) {
      if (one && 'error' in one) errors.push(one);
      else if (one) results.push(one);
    }
  }
  await commands.record(streamOf(context), context, [
    notificationDeliveryCompleted.draft({
      processed: pending.length,
      delivered: results.length,
      errors: errors.length,
      dry_run: run.dry_run,
      agent_filter: run.recipient?.name ?? null,
    }),
  ]);
  return { processed: pending.length, results, errors };
}

/** @throws AppError 404 for an unknown recipient */
function dryRunOf(one: PendingNotification): DeliveryResult {
  requireRecipient(one);
  return {
    notification_id: one.id,
    recipient: one.recipient,
    session_key: one.agent?.session_key ?? null,
    status: 'dry_run',
    message: renderedNotification(one),
  };
}

/**
 * Creates a notification for an agent and delivers it.
 *
 * @throws AppError 422 for a text that tries to take the agent over, 404 when there is no such agent
 */
export async function notifyAgent(
  commands: Commands,
  context: CommandContext,
  agentOf: (name: string) => Promise<PendingNotification['agent']>,
  notice: { readonly agent: string; readonly title: string; readonly message: string; readonly type: string },
): Promise<void> {
  refuseInjection('The notification', `${notice.title}\n${notice.message}`);
  const agent = await agentOf(notice.agent);
  if (!agent) throw new AppError(404, `No agent of this workspace is named ${notice.agent}.`);
  const { agent: recipient, title, message, type } = notice;
  const { events } = await commands.record(streamOf(context), context, [
    notificationRaised.draft({ recipient, type, title, message, source_type: null, source_id: null, by: null }),
  ]);
  const raised = events[0] as EventOf<typeof notificationRaised>;
  await deliverOne(commands, context, {
    id: raised.meta.number,
    recipient,
    type,
    title,
    message,
    source_type: null,
    source_id: null,
    created_at: seconds(raised.meta.at),
    agent,
    isPerson: false,
  });
}
