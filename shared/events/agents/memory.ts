/** Working memory of agents. Streams: `agent-<workspace>-<id>`. */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';
import { aboutAgent, agentFields, configOwner } from './agents.ts';

export const agentMemoryWritten = defineEvent({
  type: 'AgentMemoryWritten',
  doc: "An agent's working memory was replaced, or text was appended to it.",
  schema: z.object({
    ...agentFields,
    /** The whole memory, or the text appended to it (including separator and heading). */
    text: z.string(),
    append: z.boolean(),
    /** Length of the whole memory afterwards, characters. */
    size: z.int().nonnegative(),
  }),
  activity: ({ data, meta }) => ({
    type: 'agent_memory_updated',
    ...aboutAgent(data.agent_id),
    actor: data.name,
    description: `${data.append ? 'Added to' : 'Replaced'} the working memory of ${data.name}`,
    data: {
      content_length: data.size,
      append_mode: data.append,
      timestamp: seconds(meta.at),
      saved_to_workspace: false,
    },
  }),
});

export const agentMemoryFieldsSet = defineEvent({
  type: 'AgentMemoryFieldsSet',
  doc: "The keys of an agent's memory besides its text were replaced.",
  schema: z.object({
    ...agentFields,
    fields: z.record(z.string(), z.unknown()),
    /** Length of the text, characters. */
    size: z.int().nonnegative(),
    append: z.boolean(),
    /** Whether another event of the same append records the activity. */
    announced: z.boolean(),
  }),
  secrets: { fields: ['fields'], owner: configOwner },
  activity: ({ data, meta }) =>
    data.announced
      ? undefined
      : {
          type: 'agent_memory_updated',
          ...aboutAgent(data.agent_id),
          actor: data.name,
          description: `Added to the working memory of ${data.name}`,
          data: {
            content_length: data.size,
            append_mode: data.append,
            timestamp: seconds(meta.at),
            saved_to_workspace: false,
          },
        },
});

export const agentMemoryCleared = defineEvent({
  type: 'AgentMemoryCleared',
  doc: "An agent's working memory was emptied.",
  schema: z.object(agentFields),
  activity: ({ data, meta }) => ({
    type: 'agent_memory_cleared',
    ...aboutAgent(data.agent_id),
    actor: data.name,
    description: `Cleared the working memory of ${data.name}`,
    data: { timestamp: seconds(meta.at) },
  }),
});
