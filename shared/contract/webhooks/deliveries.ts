/** Deliveries to webhooks: requests and responses. */
import { z } from 'zod';
import { idText, idValue, limitParam, offsetParam, unixSeconds } from '../common.ts';

export const webhookDeliverySchema = z
  .object({
    id: z.int(),
    webhook_id: z.int(),
    event_type: z.string(),
    event: z.string().describe('the same as `event_type`'),
    message_id: z.string().describe('the same for each attempt to deliver this event; sent as `webhook-id`'),
    payload: z.string().describe('the body as it was sent'),
    status_code: z.int().nullable().describe('null: no response'),
    response_body: z.string().nullable(),
    error: z.string().nullable(),
    duration_ms: z.int(),
    attempt: z.int().describe('from 0'),
    is_retry: z.union([z.literal(0), z.literal(1)]),
    parent_delivery_id: z.int().nullable().describe('the delivery that this one retries'),
    next_retry_at: unixSeconds.nullable(),
    created_at: unixSeconds,
    workspace_id: z.int(),
    webhook_name: z.string(),
    webhook_url: z.string(),
  })
  .meta({ id: 'WebhookDelivery' });
export type WebhookDeliveryRecord = z.infer<typeof webhookDeliverySchema>;

export const deliveriesQuery = z.object({
  webhook_id: idText.optional(),
  limit: limitParam(50),
  offset: offsetParam,
});

export const deliveriesResponse = z.object({ deliveries: z.array(webhookDeliverySchema), total: z.int() });

export const testBody = z.object({ id: idValue });
export const retryBody = z.object({ delivery_id: idValue });

export const deliveryResult = z
  .object({
    success: z.boolean().describe('the receiver answered with a status from 200 to 299'),
    status_code: z.int().nullable(),
    response_body: z.string().nullable(),
    error: z.string().nullable(),
    duration_ms: z.int(),
    response_time_ms: z.int().describe('the same as `duration_ms`'),
    delivery_id: z.int(),
  })
  .meta({ id: 'WebhookDeliveryResult' });
export type DeliveryResult = z.infer<typeof deliveryResult>;
