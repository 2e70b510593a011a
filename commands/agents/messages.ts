/** Messages between agents. Stream: `agent_messages-<workspace>-<recipient id>`. */
import { notFound } from '../../shared/errors.ts';
import { agentMessageSent } from '../../shared/events/agents/messages.ts';
import type { EventOf } from '../../shared/events/define.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { findSecrets } from './exposure.ts';
import { refuseInjection } from './injection.ts';

export interface Message {
  readonly from: string;
  readonly to: string;
  readonly content: string;
  readonly message_type: string;
}

/** Id of the workspace's agent of this name, according to the read model. */
export type AgentIdOf = (name: string) => Promise<number | undefined>;

/**
 * Sends a message to an agent of the caller's workspace. Credentials in it are counted, not blocked.
 *
 * @returns the message's id
 * @throws AppError 422 for a text that tries to take the agent over, 404 when there is no such agent
 */
export async function sendMessage(
  commands: Commands,
  context: CommandContext,
  agentIdOf: AgentIdOf,
  { from, to, content, message_type }: Message,
): Promise<number> {
  refuseInjection('The message', content);
  const toAgentId = await agentIdOf(to);
  if (toAgentId === undefined) throw notFound('Agent');
  const fromAgentId = (await agentIdOf(from)) ?? null;
  const messageId = await commands.counters.take('message');
  const { count, types } = findSecrets(content);
  const { events } = await commands.record(`agent_messages-${context.origin.workspace}-${toAgentId}`, context, [
    agentMessageSent.draft({
      message_id: messageId,
      from,
      to,
      from_agent_id: fromAgentId,
      to_agent_id: toAgentId,
      content,
      message_type,
      secrets: { count, types },
    }),
  ]);
  // In a repeated request, this is the id of the first run.
  return (events[0] as EventOf<typeof agentMessageSent>).data.message_id;
}
