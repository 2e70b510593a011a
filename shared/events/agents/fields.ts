/** What events about agents have in common. */
import { z } from 'zod';

export const name = z.string();
export const agent = { agentId: z.int().positive(), name };

/** The record that an activity or an audit entry is about. */
export const about = (id: number) => ({ entity_type: 'agent', entity_id: id });

/** Whose key seals the secrets in an agent's config and memory. */
export const configOwner = (data: { readonly agentId: number }): string => `agent_config:${data.agentId}`;
