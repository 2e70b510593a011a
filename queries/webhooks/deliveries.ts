/** Deliveries to webhooks, as shown to callers. */
import type { DeliveryResult, WebhookDeliveryRecord } from '../../shared/contract/webhooks/deliveries.ts';
import type { Delivery } from '../../shared/ports/webhooks/queue.ts';
import { seconds } from '../../shared/time.ts';
import type { Reads } from '../reads.ts';
import { webhookNames } from './webhooks.ts';

/** Deliveries with the current names and addresses of their webhooks. */
export async function deliveryRecords(
  reads: Reads,
  workspace: number,
  deliveries: readonly Delivery[],
): Promise<WebhookDeliveryRecord[]> {
  const names = await webhookNames(reads, workspace, [...new Set(deliveries.map(({ webhookId }) => webhookId))]);
  return deliveries.map((one) => ({
    id: one.id,
    webhook_id: one.webhookId,
    event_type: one.eventType,
    event: one.eventType,
    message_id: one.messageId,
    payload: one.payload,
    status_code: one.statusCode,
    response_body: one.responseBody,
    error: one.error,
    duration_ms: one.durationMs,
    attempt: one.attempt,
    is_retry: one.attempt > 0 ? 1 : 0,
    parent_delivery_id: one.parentId,
    next_retry_at: one.nextRetryAt === null ? null : seconds(one.nextRetryAt),
    created_at: seconds(one.createdAt),
    workspace_id: workspace,
    webhook_name: names.get(one.webhookId)?.name ?? '',
    webhook_url: names.get(one.webhookId)?.url ?? '',
  }));
}

export const deliveryResultOf = ({ id, statusCode, responseBody, error, durationMs }: Delivery): DeliveryResult => ({
  success: statusCode !== null && statusCode >= 200 && statusCode < 300,
  status_code: statusCode,
  response_body: responseBody,
  error,
  duration_ms: durationMs,
  response_time_ms: durationMs,
  delivery_id: id,
});
