/**
 * The gateway's configuration document of a workspace, and actions requested from gateways. Streams:
 * `gateway_config-<workspace>`, `gateway_config_actions-<workspace>`.
 */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const gatewayConfigChanged = defineEvent({
  type: 'GatewayConfigChanged',
  doc: 'The gateway configuration was replaced or changed. The event holds the whole document, sealed, because it contains tokens and passwords.',
  schema: z.object({
    /** Null once its key has been deleted. */
    document: z.record(z.string(), z.unknown()).nullable(),
    /** `update`: PUT /api/gateway-config; the others: an agent was written to the document or removed from it. */
    cause: z.enum(['update', 'agent-created', 'agent-updated', 'agent-deleted']),
    /** Dotted paths that were set; `*` for the whole document. */
    updated_keys: z.array(z.string()),
    agent_name: z.string().nullable(),
    template: z.string().nullable(),
    /** Fields of the agent that were written. */
    fields: z.array(z.string()),
  }),
  personal: { fields: ['document'], person: () => 'gateway:config' },
  audit: ({ data }) => {
    const { cause, agent_name, template, fields } = data;
    if (cause === 'update') return { action: 'gateway_config_update', detail: { updated_keys: data.updated_keys } };
    if (cause === 'agent-created')
      return { action: 'agent_gateway_create', detail: { name: agent_name, ...(template !== null && { template }) } };
    return {
      action: 'agent_config_writeback',
      detail: { agent_name, fields, ...(cause === 'agent-deleted' && { removed: true }) },
    };
  },
});

export const gatewayActionRequested = defineEvent({
  type: 'GatewayActionRequested',
  doc: 'The primary gateway was asked to apply the stored configuration or to update itself.',
  schema: z.object({
    action: z.enum(['apply', 'update']),
    gateway_id: z.int().positive(),
    gateway_name: z.string(),
    /** HTTP status of its response; null: no response, so the outcome is unknown. */
    status: z.int().nullable(),
  }),
  audit: ({ data }) => ({
    action: data.action === 'apply' ? 'gateway_config_apply' : 'gateway_config_system_update',
    target: ['gateway', data.gateway_id],
    detail: { status: data.status },
  }),
});
