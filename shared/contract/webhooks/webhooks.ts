/** Webhooks: requests and responses. */
import { z } from 'zod';
import { WEBHOOK_FORMATS, webhookFields } from '../../events/webhooks/webhooks.ts';
import { changesOf } from '../../fields.ts';
import { idValue, notInThePast, unixSeconds } from '../common.ts';
import { filledText, text } from '../storable.ts';

export const webhookSchema = z
  .object({
    id: z.int(),
    ...webhookFields.shape,
    url: z.string(),
    secret: z.string().nullable().describe('masked but for its last four characters; null: deliveries are not signed'),
    enabled: z.boolean(),
    last_fired_at: notInThePast(unixSeconds.nullable()),
    last_status: notInThePast(z.int().nullable().describe('HTTP status of the last delivery; -1: no response')),
    consecutive_failures: notInThePast(z.int()),
    circuit_open: notInThePast(z.boolean().describe('too many deliveries in a row have failed; new events wait')),
    total_deliveries: notInThePast(z.int()),
    successful_deliveries: notInThePast(z.int()),
    failed_deliveries: notInThePast(z.int()),
    created_by: z.string(),
    created_at: unixSeconds,
    updated_at: unixSeconds,
    workspace_id: z.int(),
  })
  .meta({ id: 'Webhook' });
export type WebhookRecord = z.infer<typeof webhookSchema>;

/** Types that most receivers want; others may be named as well. */
const SUGGESTED_TYPES = [
  'agent.error',
  'agent.status_change',
  'security.login_failed',
  'security.user_created',
  'security.user_deleted',
  'security.password_change',
  'notification.mention',
  'notification.assignment',
  'activity.task_created',
  'activity.task_updated',
] as const;

/** Characters of a URL. */
const MAX_URL = 2_048;

const fields = {
  name: filledText(200),
  url: text(MAX_URL).trim().min(1, 'must not be empty').describe('http or https, of a public host'),
  events: z
    .array(text(200).min(1, 'must not be empty'))
    .max(50)
    .describe(`types of webhook events, by their full names, such as ${SUGGESTED_TYPES.join(', ')}; or \`*\` for all`)
    .default(['*']),
  format: z
    .enum(WEBHOOK_FORMATS)
    .describe('`json`: the body is `{event, timestamp, data}`; `cloudevents`: CloudEvents 1.0, structured mode')
    .default('json'),
};

export const newWebhookBody = z.object({
  ...fields,
  generate_secret: z.boolean().default(true).describe('false: deliveries are not signed'),
});

export const webhookChangesBody = z.object({
  id: idValue,
  ...changesOf({ ...fields, enabled: z.boolean() }),
  regenerate_secret: z.boolean().default(false),
  reset_circuit: z.boolean().default(false).describe('resets the failures and enables the webhook'),
});

export const webhooksResponse = z.object({ webhooks: z.array(webhookSchema) });

export const newWebhookResponse = z.object({
  id: z.int(),
  ...webhookFields.shape,
  url: z.string(),
  secret: z.string().nullable().describe('shown only now'),
  enabled: z.literal(true),
  message: z.string(),
});

export const webhookChangedResponse = z.object({
  success: z.literal(true),
  secret: z.string().optional().describe('shown only now'),
  message: z.string().optional(),
});

export const webhookDeletedResponse = z.object({ success: z.literal(true), deleted: z.literal(1) });
