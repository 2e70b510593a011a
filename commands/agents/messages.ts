/** Messages between agents. Stream: `agent_messages-<workspace>-<recipient id>`. */
import { forbidden, notFound } from '../../shared/errors.ts';
import { agentMessageSent } from '../../shared/events/agents/messages.ts';
import { userStream } from '../../shared/events/auth/users.ts';
import type { EventOf } from '../../shared/events/define.ts';
import { displayNameFault } from '../../shared/names.ts';
import { arrival, type CommandContext, type Commands } from '../handler.ts';
import { readsAsAnother } from '../names.ts';
import { findSecrets } from './exposure.ts';
import { refuseInjection } from './injection.ts';
import { agentInLog } from './names.ts';

export interface Message {
  readonly from: string;
  readonly to: string;
  readonly content: string;
  readonly message_type: string;
}

/** A user who is no admin. */
export interface Sender {
  readonly id: number;
  readonly username: string;
}

/**
 * An agent acts on messages by who sent them, so a user does not send one in the name of another user or the service.
 *
 * @throws AppError 403
 */
async function checkSender(commands: Commands, workspace: number, { id, username }: Sender, from: string) {
  const isService = displayNameFault(from, username) !== undefined;
  if (isService || (await readsAsAnother(commands, workspace, from, userStream(id))))
    throw forbidden(
      `from: "${from}" is the name of another user or of the service, or looks like one; send under your own name, or that of an agent.`,
    );
}

/**
 * Sends a message to an agent of the caller's workspace. Credentials in it are counted, not blocked.
 *
 * @param sender whose `from` is checked unless it names an agent; undefined: not checked
 * @returns the message's id
 * @throws AppError 422 for a text that tries to take the agent over, 403 for the name of another user, 404 when there is
 *   no such agent
 */
export async function sendMessage(
  commands: Commands,
  context: CommandContext,
  { from, to, content, message_type }: Message,
  sender?: Sender,
): Promise<number> {
  refuseInjection('The message', content);
  const { workspace } = context.origin;
  const agentIdOf = async (name: string) => (await agentInLog(commands, workspace, { name }, arrival(context)))?.id;
  const toAgentId = await agentIdOf(to);
  if (toAgentId === undefined) throw notFound('Agent');
  const fromAgentId = (await agentIdOf(from)) ?? null;
  if (sender && fromAgentId === null) await checkSender(commands, workspace, sender, from);
  const messageId = await commands.counters.take('message');
  const { count, types } = findSecrets(content);
  const { events } = await commands.record(`agent_messages-${workspace}-${toAgentId}`, context, [
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
