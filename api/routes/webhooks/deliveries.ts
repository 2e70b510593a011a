/** Deliveries to webhooks: list, test, retry. */
import { type ByHand, retryDelivery, testWebhook } from '../../../commands/webhooks/sending.ts';
import { deliveryRecords, deliveryResultOf } from '../../../queries/webhooks/deliveries.ts';
import * as contract from '../../../shared/contract/webhooks/deliveries.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

const byHand = ({ commands, outgoing, webhooks, now }: Services): ByHand => ({
  commands,
  outgoing,
  records: webhooks,
  now,
});

const list = defineRoute({
  method: 'get',
  path: '/api/webhooks/deliveries',
  noPast: 'deliveries are records of their own',
  summary: 'Deliveries, newest first',
  description:
    'Each attempt is a separate delivery; retries of the same event share `message_id`. The newest 200 of each webhook are kept, for 30 days.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  query: contract.deliveriesQuery,
  responses: { 200: { description: 'A page of deliveries', schema: contract.deliveriesResponse } },
  async respond({ query, identity: { workspace }, services }) {
    const { webhook_id, limit, offset } = query;
    const page = await services.webhooks.list(workspace, { webhook: webhook_id, limit, offset });
    return { deliveries: await deliveryRecords(services.reads, workspace, page.deliveries), total: page.total };
  },
});

const test = defineRoute({
  method: 'post',
  path: '/api/webhooks/test',
  summary: 'Send test.ping to a webhook',
  description:
    'Waits for the receiver. The test is sent even if the webhook does not subscribe to it or is disabled; a failure is not retried and does not count.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'none',
  body: contract.testBody,
  refuses: [404],
  responses: { 200: { description: 'How it ended, in success or failure', schema: contract.deliveryResult } },
  respond: async ({ body, identity, services }) =>
    deliveryResultOf(await testWebhook(byHand(services), identity.workspace, body.id, identity.username)),
});

const retry = defineRoute({
  method: 'post',
  path: '/api/webhooks/retry',
  summary: 'Retry a delivery',
  description:
    'Waits for the receiver. The event keeps its `webhook-id`; time and signature are new. A failure is not retried and does not count.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'none',
  body: contract.retryBody,
  refuses: [404],
  responses: { 200: { description: 'How it ended, in success or failure', schema: contract.deliveryResult } },
  respond: async ({ body, identity, services }) =>
    deliveryResultOf(await retryDelivery(byHand(services), identity.workspace, body.delivery_id)),
});

export const webhookDeliveryRoutes: readonly Route[] = [list, test, retry];
