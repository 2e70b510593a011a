/** Messages between agents. Stream: `agent_messages-<workspace>-<recipient id>`. */
import { AppError } from '../../shared/errors.ts';
import { agentMessageSent } from '../../shared/events/agents/messages.ts';
import type { EventOf } from '../../shared/events/define.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { criticalFindings } from '../screening/injection.ts';
import { findSecrets } from '../screening/secrets.ts';

/** @throws AppError 422 `{error, injection}` when the text tries to take an agent over */
export function screenMessage(content: string): void {
  const findings = criticalFindings(content);
  if (findings.length === 0) return;
  throw new AppError(422, 'The message was refused: it tries to take the agent over. Reword what the findings name.', {
    body: { injection: findings.map(({ rule, description }) => ({ rule, description })) },
  });
}

export interface Message {
  readonly from: string;
  readonly to: string;
  readonly toAgentId: number;
  readonly content: string;
  readonly messageType: string;
}

/** Sends a message that has been screened. Credentials in it are counted, not blocked. Gives the message's id. */
export async function sendMessage(commands: Commands, context: CommandContext, message: Message): Promise<number> {
  const messageId = await commands.counters.take('message');
  const { count, types } = findSecrets(message.content);
  const { events } = await commands.record(`agent_messages-${context.origin.workspace}-${message.toAgentId}`, context, [
    agentMessageSent.draft({ messageId, ...message, secrets: { count, types } }),
  ]);
  // A repeated request has the id of the first run.
  return (events[0] as EventOf<typeof agentMessageSent>).data.messageId;
}
