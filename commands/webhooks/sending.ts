/** Sends a message to a webhook once: a delivery attempt, a test, or a retry on request. */
import { randomUUID } from 'node:crypto';
import { notFound } from '../../shared/errors.ts';
import type { WebhookMessage } from '../../shared/events/webhooks/messages.ts';
import type { Outgoing } from '../../shared/ports/outgoing.ts';
import { traced } from '../../shared/ports/tracing.ts';
import type { Delivery, NewDelivery, WebhookRecords } from '../../shared/ports/webhooks/queue.ts';
import type { Commands } from '../handler.ts';
import { bodyOf, cloudEventOf, headersOf } from './signatures.ts';
import { existingWebhook, secretsAt, type WebhookState } from './webhooks.ts';

/** Whether the receiver says that it will never accept a message again (410). */
export const isGone = ({ statusCode }: Pick<NewDelivery, 'statusCode'>): boolean => statusCode === 410;

export const isSuccess = ({ statusCode }: Pick<NewDelivery, 'statusCode'>): boolean =>
  statusCode !== null && statusCode >= 200 && statusCode < 300;

export interface AttemptNumber {
  /** From 0. */
  readonly number: number;
  /** The delivery that is repeated; null: none. */
  readonly parent_id: number | null;
}

export interface Attempted {
  readonly delivery: NewDelivery;
  /** The response's `Retry-After`, as it was sent. */
  readonly retryAfter: string | null;
}

/** Sends a message once. @param at Unix ms @throws what the signal aborts with */
export async function attempt(
  outgoing: Outgoing,
  webhook: Pick<WebhookState, 'id' | 'url' | 'secret' | 'formerSecrets' | 'format'> & { readonly workspace: number },
  message: WebhookMessage,
  {
    number,
    parent_id: parentId,
    at,
    signal,
  }: AttemptNumber & { readonly at: number; readonly signal?: AbortSignal | undefined },
): Promise<Attempted> {
  const { format, workspace } = webhook;
  const body = format === 'cloudevents' ? cloudEventOf(message, workspace) : bodyOf(message, at);
  const headers = headersOf(message, { secrets: secretsAt(webhook, at), format, body, at });
  const {
    status,
    body: response,
    error,
    durationMs,
    retryAfter,
  } = await delivered(message, () => outgoing.post({ url: webhook.url, headers, body }, signal));
  const delivery = {
    workspace,
    webhookId: webhook.id,
    messageId: message.id,
    eventType: message.type,
    payload: body,
    statusCode: status,
    responseBody: response,
    error,
    durationMs,
    attempt: number,
    parentId,
    createdAt: at,
  };
  return { delivery, retryAfter };
}

/** In the trace of the event, if it has one. */
const delivered = <T>({ type, traceparent }: WebhookMessage, post: () => Promise<T>): Promise<T> =>
  traceparent === undefined ? post() : traced(`webhook ${type}`, { kind: 'consumer', parent: traceparent }, post);

/** The message of a delivery, for another attempt. */
export function messageOf({ messageId, eventType, payload, createdAt }: Delivery): WebhookMessage {
  const parsed = JSON.parse(payload) as { readonly time?: string; readonly data?: WebhookMessage['data'] };
  // Only CloudEvents have the time of the event; for other bodies, it is about that of the attempt.
  const at = parsed.time === undefined ? createdAt : Date.parse(parsed.time);
  return { id: messageId, type: eventType, at, data: parsed.data ?? {} };
}

/** Dependencies of tests and retries on request. */
export interface ByHand {
  readonly commands: Commands;
  readonly outgoing: Outgoing;
  readonly records: WebhookRecords;
  /** Unix ms */
  readonly now: () => number;
}

async function recorded(
  { outgoing, records, now }: ByHand,
  workspace: number,
  webhook: WebhookState,
  message: WebhookMessage,
  parent: Delivery | undefined,
): Promise<Delivery> {
  const erasures = await records.erasures(workspace, webhook.id);
  const { delivery: done } = await attempt(outgoing, { ...webhook, workspace }, message, {
    number: parent ? parent.attempt + 1 : 0,
    parent_id: parent?.id ?? null,
    at: now(),
  });
  // A name that has been erased since then is not recorded again.
  const repeated = parent && (await records.find(workspace, parent.id));
  const erased = repeated && repeated.payload !== parent.payload && { payload: repeated.payload };
  const delivery = { ...done, ...erased };
  const id = await records.record(delivery, erasures);
  // The webhook was deleted in the meantime.
  if (id === undefined) throw notFound('Webhook');
  return { ...delivery, id, nextRetryAt: null };
}

/**
 * Sends `test.ping`, whatever the webhook has chosen, and whether or not it is enabled. A failure has no consequences.
 *
 * @param by name of the caller
 * @throws AppError 404
 */
export async function testWebhook(parts: ByHand, workspace: number, id: number, by: string): Promise<Delivery> {
  const webhook = await existingWebhook(parts.commands, workspace, id);
  const at = parts.now();
  const data = {
    message: 'This is a test of the webhook.',
    webhook_id: id,
    webhook_name: webhook.name,
    triggered_by: by,
    workspace_id: workspace,
  };
  return recorded(parts, workspace, webhook, { id: `msg_${randomUUID()}`, type: 'test.ping', at, data }, undefined);
}

/** Sends the message of a delivery once more. A failure has no consequences. @throws AppError 404 */
export async function retryDelivery(parts: ByHand, workspace: number, id: number): Promise<Delivery> {
  const delivery = await parts.records.find(workspace, id);
  if (!delivery) throw notFound('Delivery');
  const webhook = await existingWebhook(parts.commands, workspace, delivery.webhookId);
  return recorded(parts, workspace, webhook, messageOf(delivery), delivery);
}
