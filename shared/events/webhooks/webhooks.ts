/**
 * Webhooks: URLs that receive events. Streams: `webhook-<workspace>-<id>`.
 *
 * Deliveries and their results are not in the log but in records that are kept for a while
 * (`shared/ports/webhooks/queue.ts`).
 */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

/** Formats of bodies: `{event, timestamp, data}`, or a CloudEvents 1.0 event in structured mode. */
export const WEBHOOK_FORMATS = ['json', 'cloudevents'] as const;

const webhook_id = z.int().positive();
/** Sealed with a key of the webhook's own; null once that key has been deleted. */
const sealedText = z.string().nullable();

/** What a webhook says. */
export const webhookFields = z.object({
  name: z.string(),
  /** Often holds a token. */
  url: sealedText,
  /** Signs deliveries; null: they are not signed. */
  secret: sealedText,
  /** Types of webhook events; `*`: all. */
  events: z.array(z.string()),
  format: z.enum(WEBHOOK_FORMATS),
});
const changes = webhookFields.extend({ enabled: z.boolean() }).partial();
export type WebhookFields = z.infer<typeof webhookFields>;
export type WebhookChanges = z.infer<typeof changes>;
export type WebhookFormat = WebhookFields['format'];

const person = (data: { readonly webhook_id: number }): string => `webhook:${data.webhook_id}`;

export const webhookCreated = defineEvent({
  type: 'WebhookCreated',
  doc: 'A webhook was created. It receives the events after this one.',
  schema: webhookFields.extend({ webhook_id }),
  personal: { fields: ['url', 'secret'], person },
});

export const webhookUpdated = defineEvent({
  type: 'WebhookUpdated',
  doc: 'Fields of a webhook were set. Absent fields are unchanged; without any, only the time of the last change is new.',
  schema: changes.extend({ webhook_id }),
  personal: { fields: ['url', 'secret'], person },
});

export const webhookTripped = defineEvent({
  type: 'WebhookTripped',
  doc: 'A webhook was disabled, because its deliveries failed too often, or because its receiver is gone. Undelivered events wait until it is enabled again.',
  schema: z.object({
    webhook_id,
    /** `gone`: the receiver responded with 410. */
    reason: z.enum(['failures', 'gone']),
    /** Failed attempts in a row. */
    failures: z.int().positive(),
  }),
  audit: ({ data: { webhook_id: id, ...detail } }) => ({ action: 'webhook_disabled', target: ['webhook', id], detail }),
});

export const webhookDeleted = defineEvent({
  type: 'WebhookDeleted',
  doc: 'A webhook was deleted, with its deliveries.',
  schema: z.object({ webhook_id }),
});
