/**
 * Chat. The conversation's stream, `chat-<workspace>-<key>`, fixes the id of a conversation, which is the id of its
 * first message; `chat_message-<workspace>-<id>` knows whether a message has been read.
 */
import type { ConversationRef, Forward } from '../shared/contract/chat.ts';
import { notFound } from '../shared/errors.ts';
import { chatMessageRead, chatMessageSent } from '../shared/events/chat.ts';
import { type EventDraft, type EventOf, firstOf } from '../shared/events/define.ts';
import { defineDecider, on } from './decider.ts';
import type { CommandContext, Commands } from './handler.ts';
import { reserveId } from './reserve.ts';
import { refuseInjection } from './screening/injection.ts';

export interface Conversation {
  /** 0: it has not begun. */
  readonly id: number;
  readonly key: string;
}

export const chatDecider = defineDecider<{ readonly id: number }>({
  kind: 'conversation',
  // Conversations become long.
  snapshotVersion: 1,
  initial: { id: 0 },
  folds: [on(chatMessageSent, (state, { data }) => (state.id === 0 ? { id: data.conversationId } : state))],
});

export const chatReadDecider = defineDecider<{ readonly read: boolean }>({
  kind: 'message',
  initial: { read: false },
  folds: [on(chatMessageRead, () => ({ read: true }))],
});

interface Target {
  readonly id: number;
  readonly name: string;
  readonly session_key: string | null;
}

/** What a message has to look up in its workspace. */
export interface ChatDirectory {
  conversation(ref: ConversationRef): Promise<Conversation | undefined>;
  agent(ref: { readonly name: string } | { readonly sessionKey: string }): Promise<Target | undefined>;
}

export interface ChatMessage {
  readonly from: string;
  readonly content: string;
  /** Undefined: a new conversation. */
  readonly conversation: ConversationRef | undefined;
  readonly recipient: string | undefined;
  readonly messageType: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly forward: boolean;
  readonly sessionKey: string | undefined;
}

/** Keys of the service's own: of new conversations, and of messages between agents. Clients cannot begin those. */
const OWN_KEYS = /^(chat|a2a):/;

/** @throws AppError 404 */
async function conversationOf(
  directory: ChatDirectory,
  ref: ConversationRef | undefined,
  messageId: number,
): Promise<Conversation> {
  if (ref === undefined) return { id: 0, key: `chat:${messageId}` };
  const known = await directory.conversation(ref);
  if (known) return known;
  if ('id' in ref || OWN_KEYS.test(ref.key)) throw notFound('Conversation');
  return { id: 0, key: ref.key };
}

/** What became of a message that was to be forwarded. */
function forwardOf(recipient: string | undefined, target: Target | undefined): Forward {
  if (target) {
    return { attempted: true, delivered: true, ...(target.session_key !== null && { session: target.session_key }) };
  }
  if (recipient === undefined) return { attempted: false, delivered: false, reason: 'no_recipient' };
  return { attempted: true, delivered: false, reason: 'no_active_session' };
}

/** The message, and in conversations with the coordinator a report of what became of it. Ids are in the drafts. */
export function decideSay(
  state: { readonly id: number },
  conversation: Conversation,
  message: Omit<EventOf<typeof chatMessageSent>['data'], 'conversationId' | 'conversation' | 'report'>,
  report: { readonly messageId: number; readonly forward: Forward } | undefined,
): EventDraft[] {
  const place = {
    conversationId: conversation.id || state.id || message.messageId,
    conversation: conversation.key,
  };
  const said = chatMessageSent.draft({ ...message, ...place, report: false });
  if (!report) return [said];
  const { forward } = report;
  const metadata = forward.delivered
    ? { status: 'accepted' }
    : { status: 'offline', ...(forward.reason && { reason: forward.reason }) };
  const answer = chatMessageSent.draft({
    ...place,
    messageId: report.messageId,
    from: message.to ?? message.from,
    to: message.from,
    toAgentId: null,
    content: forward.delivered
      ? `The message is in the inbox of ${message.to}.`
      : `${message.to} is not an agent of this workspace, so nobody received the message.`,
    messageType: 'status',
    metadata,
    report: true,
  });
  return [said, answer];
}

/** Conversations in which the sender is told what became of a forwarded message. */
const reports = (key: string, forward: Forward): boolean =>
  forward.attempted && (key.startsWith('coord:') || (key.startsWith('agent_') && !forward.delivered));

/**
 * Says something in a conversation. A message to an agent of the workspace is in its inbox afterwards.
 *
 * @returns the message's id
 * @throws AppError 422 for a text to an agent, or to be forwarded, that tries to take its reader over; 404 when there is
 *   no such conversation
 */
export async function say(
  commands: Commands,
  context: CommandContext,
  directory: ChatDirectory,
  message: ChatMessage,
): Promise<number> {
  const { workspace } = context.origin;
  const { content, from, forward, sessionKey } = message;
  const bySession = sessionKey === undefined ? undefined : await directory.agent({ sessionKey });
  const recipient = message.recipient ?? bySession?.name;
  const target = bySession ?? (recipient === undefined ? undefined : await directory.agent({ name: recipient }));
  if (target || (forward && recipient !== undefined)) refuseInjection('The message', content);

  const messageId = await reserveId(commands, context, 'message', (id) => `chat_message-${workspace}-${id}`);
  const conversation = await conversationOf(directory, message.conversation, messageId);
  const outcome = forward ? forwardOf(recipient, target) : undefined;
  const told = outcome && reports(conversation.key, outcome) ? outcome : undefined;
  const report = told && { messageId: await commands.counters.take('message'), forward: told };
  const data = {
    messageId,
    from,
    to: recipient ?? null,
    toAgentId: target?.id ?? null,
    content,
    messageType: message.messageType,
    metadata: outcome ? { ...message.metadata, forwardInfo: outcome } : message.metadata,
  };
  const stream = `chat-${workspace}-${encodeURIComponent(conversation.key)}`;
  const decide = (state: { readonly id: number }) => decideSay(state, conversation, data, report);
  // The id of a conversation that has begun is known, so there is nothing to decide.
  const { events } =
    conversation.id === 0
      ? await commands.execute(chatDecider, stream, context, decide, { fresh: true })
      : await commands.record(stream, context, decide({ id: conversation.id }));
  // In a repeated request, this is the id of the first run.
  return firstOf(events, chatMessageSent)?.data.messageId ?? messageId;
}

/** Marks a message as read, now. */
export async function readMessage(
  commands: Commands,
  context: CommandContext,
  message: { readonly id: number; readonly conversation: string; readonly to: string | null },
): Promise<void> {
  const { id: messageId, conversation, to } = message;
  await commands.execute(chatReadDecider, `chat_message-${context.origin.workspace}-${messageId}`, context, (state) => [
    chatMessageRead.draft({ messageId, conversation, to, first: !state.read }),
  ]);
}
