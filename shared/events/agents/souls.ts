/** Souls (persona texts) of agents. Streams: `agent-<workspace>-<id>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { aboutAgent, agentFields } from './agents.ts';

export const agentSoulChanged = defineEvent({
  type: 'AgentSoulChanged',
  doc: "An agent's persona text was replaced.",
  schema: z.object({
    ...agentFields,
    soul_content: z.string(),
    template: z.string().nullable(),
    previous_length: z.int().nonnegative(),
  }),
  activity: ({ data }) => ({
    type: 'agent_soul_updated',
    ...aboutAgent(data.agent_id),
    description: `Updated the soul of ${data.name}`,
    data: {
      ...(data.template !== null && { template_used: data.template }),
      content_length: data.soul_content.length,
      previous_content_length: data.previous_length,
      saved_to_workspace: false,
    },
  }),
});
