/** Messages between agents. Stream: `agent_messages-<workspace>-<recipient id>`. */
import { agentMessageSent } from '../../shared/events/agents/messages.ts';
import type { EventOf } from '../../shared/events/define.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { findSecrets } from '../screening/secrets.ts';

export interface Message {
  readonly from: string;
  readonly to: string;
  readonly toAgentId: number;
  readonly content: string;
  readonly messageType: string;
}

/** Sends a screened message. Credentials in it are counted but not blocked. @returns the message's id */
export async function sendMessage(commands: Commands, context: CommandContext, message: Message): Promise<number> {
  const messageId = await commands.counters.take('message');
  const { count, types } = findSecrets(message.content);
  const { events } = await commands.record(`agent_messages-${context.origin.workspace}-${message.toAgentId}`, context, [
    agentMessageSent.draft({ messageId, ...message, secrets: { count, types } }),
  ]);
  // In a repeated request, this is the id of the first run.
  return (events[0] as EventOf<typeof agentMessageSent>).data.messageId;
}
