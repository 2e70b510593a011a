/** Webhooks: list, create, change, delete. */
import { changeWebhook, createWebhook, deleteWebhook, newSecret } from '../../../commands/webhooks/webhooks.ts';
import { countWebhooks, listWebhooks } from '../../../queries/webhooks/webhooks.ts';
import { createAddressRule } from '../../../shared/addresses.ts';
import { idBody } from '../../../shared/contract/common.ts';
import * as contract from '../../../shared/contract/webhooks/webhooks.ts';
import { invalidField } from '../../../shared/errors.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { limitsOf } from '../../services.ts';
import type { ApiSettings } from '../../settings.ts';

/** @throws AppError 400 */
function checkUrl(settings: ApiSettings, url: string): void {
  const fault = createAddressRule(settings.webhookAllowedNetworks).fault(url);
  if (fault !== undefined) throw invalidField('url', fault);
}

const list = defineRoute({
  method: 'get',
  path: '/api/webhooks',
  summary: 'Webhooks, newest first',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'all', prompts: 'none' },
  responses: { 200: { description: 'Webhooks; secrets are masked', schema: contract.webhooksResponse } },
  async respond({ identity: { workspace, seesSecrets }, services: { reads, webhooks, settings } }) {
    const states = reads.past === undefined ? await webhooks.states(workspace) : undefined;
    return { webhooks: await listWebhooks(reads, workspace, states, settings.webhookMaxAttempts, seesSecrets) };
  },
});

const create = defineRoute({
  method: 'post',
  path: '/api/webhooks',
  summary: 'Create a webhook',
  description:
    'The URL receives all later events of the chosen types. The secret that signs deliveries is shown only in this response. The host of the URL must be public.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  body: contract.newWebhookBody,
  responses: { 200: { description: 'The webhook, with its secret', schema: contract.newWebhookResponse } },
  async respond({ body, identity: { workspace }, services, command }) {
    const { generate_secret, ...fields } = body;
    checkUrl(services.settings, fields.url);
    const limits = limitsOf(services, countWebhooks);
    const { id, position, secret } = await createWebhook(services.commands, command, limits, {
      ...fields,
      secret: generate_secret ? newSecret() : null,
    });
    await services.webhooks.begin(workspace, id, position);
    const message =
      secret === null
        ? 'The webhook was created. Its deliveries are not signed.'
        : 'The webhook was created. Store the secret now: it is not shown again.';
    return { id, ...fields, secret, enabled: true as const, message };
  },
});

const change = defineRoute({
  method: 'put',
  path: '/api/webhooks',
  summary: 'Change a webhook',
  description:
    'Omitted fields stay unchanged. `regenerate_secret` replaces the secret, and the response shows the new one; for a day, the old one signs deliveries as well. `reset_circuit` resets the failures and enables the webhook, regardless of `enabled`.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  body: contract.webhookChangesBody,
  refuses: [404],
  responses: { 200: { description: 'Changed', schema: contract.webhookChangedResponse } },
  async respond({ body, identity: { workspace }, services, command }) {
    const { id, regenerate_secret, reset_circuit, ...changes } = body;
    if (changes.url !== undefined) checkUrl(services.settings, changes.url);
    // Reset first: once enabled, a worker may deliver, and another failure could disable the webhook again.
    if (reset_circuit) await services.webhooks.reset(workspace, id);
    const { secret } = await changeWebhook(services.commands, command, id, {
      ...changes,
      ...(reset_circuit && { enabled: true }),
      ...(regenerate_secret && { secret: newSecret() }),
    });
    if (!regenerate_secret || secret === null) return { success: true as const };
    const message =
      'The secret was replaced. Store the new one now: it is not shown again. For a day, deliveries are signed with both.';
    return { success: true as const, secret, message };
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/webhooks',
  summary: 'Delete a webhook and its deliveries',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  body: idBody,
  refuses: [404],
  responses: { 200: { description: 'Deleted', schema: contract.webhookDeletedResponse } },
  async respond({ body: { id }, identity, services, command }) {
    await deleteWebhook(services.commands, command, id);
    await services.webhooks.remove(identity.workspace, id);
    return { success: true as const, deleted: 1 as const };
  },
});

export const webhookRoutes: readonly Route[] = [list, create, change, remove];
