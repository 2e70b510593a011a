/** What the tests of webhooks share. */
import { newWebhookResponse, webhooksResponse } from '../../../shared/contract/webhooks/webhooks.ts';
import type { Receiver } from '../receiver.ts';
import { conforms, startAgentsWorld } from './agents.ts';

/** A service that may send to the receiver, and gives up soon. */
export async function startWebhooksWorld({ url }: Pick<Receiver, 'url'>) {
  const world = await startAgentsWorld({
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
    WEBHOOK_TIMEOUT_MS: '400',
    // The last attempt comes later than a test needs to see the others fail.
    WEBHOOK_RETRY_SECONDS: '0.05,1',
    MC_WEBHOOK_MAX_RETRIES: '3',
  });
  const webhooks = async () => conforms(webhooksResponse, await world.ask('GET', '/api/webhooks')).webhooks;
  return {
    ...world,
    /** As the list shows them. */
    webhooks,
    webhook: async (id: number) => (await webhooks()).find((one: { id: number }) => one.id === id),
    /** Creates one and gives the body of the response. */
    createWebhook: async (fields: object = {}) =>
      conforms(
        newWebhookResponse,
        await world.ask('POST', '/api/webhooks', { name: 'hook', url, events: [], ...fields }),
      ),
  };
}
