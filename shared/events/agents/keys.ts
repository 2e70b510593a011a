/** Keys of agents. Streams: `agent-<workspace>-<id>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const agentKeyIssued = defineEvent({
  type: 'AgentKeyIssued',
  version: 1,
  doc: 'An API key for an agent was created. Only its owner has the key itself; its hash is in the credential store.',
  schema: z.object({
    keyId: z.int().positive(),
    agentId: z.int().positive(),
    agentName: z.string(),
    /** Name of the key. */
    name: z.string(),
    prefix: z.string(),
    scopes: z.array(z.string()),
    createdBy: z.string(),
    /** Unix seconds; null: never. */
    expiresAt: z.int().nullable(),
  }),
  audit: ({ data }) => ({
    action: 'agent_key_issued',
    target_type: 'agent',
    target_id: data.agentId,
    detail: {
      key_id: data.keyId,
      name: data.name,
      key_prefix: data.prefix,
      scopes: data.scopes,
      expires_at: data.expiresAt,
    },
  }),
});

export const agentKeyRevoked = defineEvent({
  type: 'AgentKeyRevoked',
  version: 1,
  doc: 'An API key of an agent was revoked for good.',
  schema: z.object({ keyId: z.int().positive(), agentId: z.int().positive(), agentName: z.string() }),
  audit: ({ data }) => ({
    action: 'agent_key_revoked',
    target_type: 'agent',
    target_id: data.agentId,
    detail: { key_id: data.keyId },
  }),
});

export const agentKeyEvents = [agentKeyIssued, agentKeyRevoked];
