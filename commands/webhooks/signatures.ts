/** The request to a webhook: its body, and the headers by which the receiver can verify it. Pure. */
import { createHmac } from 'node:crypto';
import type { WebhookMessage } from '../../shared/events/webhooks/messages.ts';
import type { WebhookFormat } from '../../shared/events/webhooks/webhooks.ts';
import { seconds } from '../../shared/time.ts';

/** Maximum number of bytes in a body. Data beyond that is left out. */
const MAX_BODY = 1_000_000;

function bounded(data: WebhookMessage['data'], bodyWith: (content: object) => string): string {
  const body = bodyWith(data);
  if (Buffer.byteLength(body) <= MAX_BODY) return body;
  const { id, workspace_id } = data;
  return bodyWith({ id, workspace_id, truncated: true });
}

/** @param at Unix ms */
export const bodyOf = ({ type, data }: Pick<WebhookMessage, 'type' | 'data'>, at: number): string =>
  bounded(data, (content) => JSON.stringify({ event: type, timestamp: seconds(at), data: content }));

/**
 * A message as a CloudEvents 1.0 event in structured mode, JSON format. It is the same for each attempt.
 *
 * Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
 */
export const cloudEventOf = ({ id, type, at, data }: WebhookMessage, workspace: number): string =>
  bounded(data, (content) =>
    JSON.stringify({
      specversion: '1.0',
      id,
      source: `/workspaces/${workspace}`,
      type,
      time: new Date(at).toISOString(),
      datacontenttype: 'application/json',
      data: content,
    }),
  );

const MEDIA_TYPES: Readonly<Record<WebhookFormat, string>> = {
  json: 'application/json',
  cloudevents: 'application/cloudevents+json',
};

/** `sha256=<hex>`; the key is the secret as it was shown. */
export const signatureOf = (secret: string, body: string): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

/**
 * The signature of Standard Webhooks. Its libraries expect the secret as base64. Every secret of ours is also valid
 * base64, so the same text works.
 */
export const standardSignatureOf = (
  secret: string,
  { id, timestamp, body }: { readonly id: string; readonly timestamp: number; readonly body: string },
): string =>
  `v1,${createHmac('sha256', Buffer.from(secret, 'base64')).update(`${id}.${timestamp}.${body}`).digest('base64')}`;

/** @param at of the attempt, Unix ms; the same as for `bodyOf` */
export function headersOf(
  { id, type }: Pick<WebhookMessage, 'id' | 'type'>,
  {
    secrets,
    format,
    body,
    at,
  }: {
    /** The current one first. */
    readonly secrets: readonly string[];
    readonly format: WebhookFormat;
    readonly body: string;
    readonly at: number;
  },
): Readonly<Record<string, string>> {
  const timestamp = seconds(at);
  const [secret, former] = secrets;
  return {
    'content-type': MEDIA_TYPES[format],
    'user-agent': 'Signalbox-Webhook/1.0',
    'x-mc-event': headerText(type),
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    ...(secret !== undefined && {
      'x-mc-signature': signatureOf(secret, body),
      'webhook-signature': secrets.map((one) => standardSignatureOf(one, { id, timestamp, body })).join(' '),
    }),
    // A header of its own, because receivers compare the whole value of the other one.
    ...(former !== undefined && { 'x-mc-signature-previous': signatureOf(former, body) }),
  };
}

/** Most types are our own, but an adapter may choose some of them. */
const headerText = (text: string): string => text.replace(/[^\x20-\x7e]/g, '?');
