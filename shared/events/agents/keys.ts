/** Keys of agents. Streams: `agent-<workspace>-<id>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const agentKeyIssued = defineEvent({
  type: 'AgentKeyIssued',
  doc: 'An API key for an agent was created. The key itself is not stored; its hash is in the credential store.',
  schema: z.object({
    key_id: z.int().positive(),
    agent_id: z.int().positive(),
    agent_name: z.string(),
    /** Name of the key. */
    name: z.string(),
    prefix: z.string(),
    scopes: z.array(z.string()),
    created_by: z.string(),
    /** Unix seconds; null: never. */
    expires_at: z.int().nullable(),
  }),
  audit: ({ data }) => ({
    action: 'agent_key_issued',
    target: ['agent', data.agent_id],
    detail: {
      key_id: data.key_id,
      name: data.name,
      key_prefix: data.prefix,
      scopes: data.scopes,
      expires_at: data.expires_at,
    },
  }),
});

export const agentKeyRevoked = defineEvent({
  type: 'AgentKeyRevoked',
  doc: 'An API key of an agent was revoked permanently.',
  schema: z.object({ key_id: z.int().positive(), agent_id: z.int().positive(), agent_name: z.string() }),
  audit: ({ data }) => ({
    action: 'agent_key_revoked',
    target: ['agent', data.agent_id],
    detail: { key_id: data.key_id },
  }),
});
