/** Working memory of agents. Streams: `agent-<workspace>-<id>`. */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';
import { aboutAgent, agentFields, configOwner } from './agents.ts';

export const agentMemoryWritten = defineEvent({
  type: 'AgentMemoryWritten',
  version: 1,
  doc: "An agent's working memory was replaced, or text was added to its end.",
  schema: z.object({
    ...agentFields,
    /** The whole memory, or what is added to it (separator and heading included). */
    text: z.string(),
    append: z.boolean(),
    /** Characters of the whole memory afterwards. */
    size: z.int().nonnegative(),
  }),
  activity: ({ data, meta }) => ({
    type: 'agent_memory_updated',
    ...aboutAgent(data.agentId),
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
  version: 1,
  doc: "The keys that an agent's memory has besides its text were set; all others of them are gone.",
  schema: z.object({
    ...agentFields,
    fields: z.record(z.string(), z.unknown()),
    /** Characters of the text. */
    size: z.int().nonnegative(),
    append: z.boolean(),
    /** Another event of the same append carries the activity. */
    announced: z.boolean(),
  }),
  secrets: { fields: ['fields'], owner: configOwner },
  activity: ({ data, meta }) =>
    data.announced
      ? undefined
      : {
          type: 'agent_memory_updated',
          ...aboutAgent(data.agentId),
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
  version: 1,
  doc: "An agent's working memory was emptied.",
  schema: z.object(agentFields),
  activity: ({ data, meta }) => ({
    type: 'agent_memory_cleared',
    ...aboutAgent(data.agentId),
    actor: data.name,
    description: `Cleared the working memory of ${data.name}`,
    data: { timestamp: seconds(meta.at) },
  }),
});

export const agentMemoryEvents = [agentMemoryWritten, agentMemoryFieldsSet, agentMemoryCleared];
