/**
 * The undelivered messages of a webhook, in log order.
 *
 * The subscriptions at the time of an event decide whether the webhook receives it, so a later change, or a period in
 * which it was disabled, has the same effect however late the delivery is.
 */
import { EventUnreadableError } from '../../../shared/errors.ts';
import type { EventStore } from '../../../shared/event-store.ts';
import { catalogue } from '../../../shared/events/catalogue.ts';
import type { DomainEvent, EventDefinition } from '../../../shared/events/define.ts';
import { type FrameNames, framesOf, shownFrames } from '../../../shared/events/monitoring/frames.ts';
import { isChosen, MESSAGE_EVENTS, messagesOf, type WebhookMessage } from '../../../shared/events/webhooks/messages.ts';
import type { LoggedEvent, Position } from '../../../shared/ports/event-log.ts';
import type { Claim, WebhookQueue } from '../../../shared/ports/webhooks/queue.ts';
import { type WebhookState, webhookDecider, webhookStream } from '../../webhooks/webhooks.ts';
import type { LogCache } from './log-cache.ts';

export interface MessageParts {
  readonly store: Pick<EventStore, 'log' | 'decode'>;
  readonly names: FrameNames;
  readonly queue: Pick<WebhookQueue, 'delivered'>;
  /** Called for events that cannot be read; they are skipped. */
  readonly skipped: (error: EventUnreadableError) => void;
}

/** The webhook after each of its events, oldest first. */
export interface WebhookHistory {
  readonly versions: readonly { readonly position: Position; readonly state: WebhookState }[];
  readonly tenant: number;
}

export async function historyOf(
  store: MessageParts['store'],
  { workspace, webhook }: Pick<Claim, 'workspace' | 'webhook'>,
): Promise<WebhookHistory> {
  const versions: { position: Position; state: WebhookState }[] = [];
  let state = webhookDecider.initial;
  let tenant = 1;
  for await (const events of store.log.readStream(webhookStream(workspace, webhook))) {
    for (const logged of events) {
      const event = await store.decode(logged);
      state = webhookDecider.evolve(state, { type: event.type, data: event.data, at: event.meta.at });
      versions.push({ position: event.position, state });
      tenant = event.meta.tenant;
    }
  }
  return { versions, tenant };
}

/** A message, or with none the move past events without messages. */
export interface Step {
  readonly message: WebhookMessage | undefined;
  /**
   * The position of the webhook after this step. Undefined: unchanged, because the event has more messages; if the
   * worker dies, another one sends the rest.
   */
  readonly position: Position | undefined;
}

/** The steps from the position of a claim to the last event that it has to deliver, page by page. */
export async function* undelivered(
  parts: MessageParts,
  log: LogCache,
  claim: Claim,
  history: WebhookHistory,
): AsyncGenerator<Step, void, void> {
  let { position } = claim;
  while (position < claim.wanted) {
    const page = await log.after(position);
    const last = page.at(-1);
    if (!last) return;
    for (const logged of page) {
      const messages = await messagesFor(parts, claim, history, logged);
      for (const [index, message] of messages.entries())
        yield { message, position: index === messages.length - 1 ? logged.position : undefined };
    }
    position = last.position;
    yield { message: undefined, position };
  }
}

/** The messages of this event for this webhook, without those already delivered. */
async function messagesFor(
  { store, queue, skipped, names }: MessageParts,
  claim: Claim,
  { versions }: WebhookHistory,
  logged: LoggedEvent,
): Promise<readonly WebhookMessage[]> {
  if (logged.meta.workspace !== claim.workspace || !MESSAGE_EVENTS.has(logged.type)) return [];
  const then = versions.findLast(({ position }) => position < logged.position)?.state;
  if (!then?.enabled) return [];
  let event: DomainEvent;
  try {
    event = await store.decode(logged);
  } catch (error) {
    if (!(error instanceof EventUnreadableError)) throw error;
    skipped(error);
    return [];
  }
  const definition = catalogue.get(event.type) as EventDefinition;
  const frames = framesOf(definition, event);
  const isWanted = ({ type }: WebhookMessage) => isChosen(then.events, type);
  if (!messagesOf(definition, event, frames).some(isWanted)) return [];
  const shown = await shownFrames(frames, event, names);
  const chosen = messagesOf(definition, event, shown).filter(isWanted);
  // The record of an event's only message also moves the position, so that message cannot have been delivered before.
  if (chosen.length <= 1) return chosen;
  const ids = chosen.map(({ id }) => id);
  const delivered = await queue.delivered(claim, ids);
  return chosen.filter(({ id }) => !delivered.has(id));
}
