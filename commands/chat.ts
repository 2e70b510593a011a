/**
 * Chat. The conversation's stream, `chat-<workspace>-<key>`, fixes the id of a conversation, which is the id of its
 * first message; `chat_message-<workspace>-<id>` knows whether a message has been read.
 */
import type { ConversationRef, Forward } from '../shared/contract/chat.ts';
import { notFound } from '../shared/errors.ts';
import { chatMessageRead, chatMessageSent } from '../shared/events/chat.ts';
import { type EventDraft, type EventOf, firstOf } from '../shared/events/define.ts';
import { refuseInjection } from './agents/injection.ts';
import { defineDecider, on } from './decider.ts';
import type { CommandContext, Commands } from './handler.ts';
import { reserveId } from './record-ids.ts';

export interface Conversation {
  /** 0: it has not begun. */
  readonly id: number;
  readonly key: string;
}

export const chatDecider = defineDecider<{ readonly id: number }>({
  kind: 'conversation',
  // Conversations become long, so they need snapshots.
  snapshotVersion: 1,
  initial: { id: 0 },
  folds: [on(chatMessageSent, (state, { data }) => (state.id === 0 ? { id: data.conversation_id } : state))],
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

/** Lookups of a message in its workspace. */
export interface ChatDirectory {
  conversation(ref: ConversationRef): Promise<Conversation | undefined>;
  agent(ref: { readonly name: string } | { readonly session_key: string }): Promise<Target | undefined>;
  /** The agent that receives messages to the coordinator; `name` is the coordinator's name. */
  coordinator(name: string): Promise<Target | undefined>;
}

/** A message for a live session. */
export interface SessionMessage {
  readonly workspace: number;
  readonly id: number;
  readonly from: string;
  readonly to: string | null;
  readonly content: string;
  /** Key of the conversation. */
  readonly conversation: string;
}

/** Delivers a message to a live session. Undefined: it could not be delivered. */
export type Deliver = (
  session: string,
  message: SessionMessage,
) => Promise<{ readonly run_id: string | null } | undefined>;

export interface ChatMessage {
  readonly from: string;
  /** The agent that is the sender; null: none; undefined: the agent of that name, if there is one. */
  readonly fromId: number | null | undefined;
  readonly content: string;
  /** Undefined: a new conversation. */
  readonly conversation: ConversationRef | undefined;
  readonly recipient: string | undefined;
  readonly message_type: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly forward: boolean;
  readonly session_key: string | undefined;
  /** Forward the message only to the session of an agent of this workspace. */
  readonly ownSessionsOnly: boolean;
  /** The name under which the coordinator is addressed. */
  readonly coordinator: string;
}

/** Reserved keys: of new conversations, and of messages between agents. Clients cannot begin such conversations. */
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

/** The outcome of a message that was to be forwarded. */
function forwardOf(
  recipient: string | undefined,
  target: Target | undefined,
  sent: { readonly session: string; readonly answer: { readonly run_id: string | null } | undefined } | undefined,
): Forward {
  if (sent) {
    const { session, answer } = sent;
    if (!answer) return { attempted: true, delivered: false, reason: 'gateway_send_failed', session };
    return { attempted: true, delivered: true, session, ...(answer.run_id !== null && { runId: answer.run_id }) };
  }
  if (target) {
    return { attempted: true, delivered: true, ...(target.session_key !== null && { session: target.session_key }) };
  }
  if (recipient === undefined) return { attempted: false, delivered: false, reason: 'no_recipient' };
  return { attempted: true, delivered: false, reason: 'no_active_session' };
}

/** The message, and in conversations with the coordinator a report of its outcome. The drafts contain the ids. */
export function decideSay(
  state: { readonly id: number },
  conversation: Conversation,
  message: Omit<EventOf<typeof chatMessageSent>['data'], 'conversation_id' | 'conversation' | 'report'>,
  report: { readonly message_id: number; readonly forward: Forward } | undefined,
): EventDraft[] {
  const place = {
    conversation_id: conversation.id || state.id || message.message_id,
    conversation: conversation.key,
  };
  const said = chatMessageSent.draft({ ...message, ...place, report: false });
  if (!report) return [said];
  const { forward } = report;
  const { delivered, reason, runId } = forward;
  const failed = reason === 'gateway_send_failed';
  const metadata = delivered
    ? { status: 'accepted', ...(runId !== undefined && { runId }) }
    : { status: failed ? 'delivery_failed' : 'offline', ...(reason && { reason }) };
  const answer = chatMessageSent.draft({
    ...place,
    message_id: report.message_id,
    from: message.to ?? message.from,
    from_agent_id: message.to === null ? message.from_agent_id : message.recipient_id,
    to: message.from,
    recipient_id: message.from_agent_id,
    to_agent_id: null,
    content: outcomeText(forward, message),
    message_type: 'status',
    metadata,
    report: true,
  });
  return [said, answer];
}

/** The outcome of a message, as text for its sender. */
function outcomeText(
  { delivered, reason }: Forward,
  { to, to_agent_id: toAgentId }: { readonly to: string | null; readonly to_agent_id: number | null },
): string {
  if (delivered)
    return toAgentId === null ? `The session of ${to} has the message.` : `The message is in the inbox of ${to}.`;
  if (reason !== 'gateway_send_failed')
    return `${to} is not an agent of this workspace, so nobody received the message.`;
  return toAgentId === null
    ? 'The gateway did not take the message, so nobody received it.'
    : `The gateway did not take the message; it is in the inbox of ${to}.`;
}

/** Conversations in which the sender gets the outcome of a forwarded message. */
const reports = (key: string, forward: Forward): boolean =>
  forward.attempted && (key.startsWith('coord:') || (key.startsWith('agent_') && !forward.delivered));

/** The agent that a message is addressed to. */
async function targetOf(
  directory: ChatDirectory,
  { recipient, session_key, coordinator }: Pick<ChatMessage, 'recipient' | 'session_key' | 'coordinator'>,
): Promise<Target | undefined> {
  const bySession = session_key === undefined ? undefined : await directory.agent({ session_key });
  if (bySession || recipient === undefined) return bySession;
  if (recipient.toLowerCase() === coordinator.toLowerCase()) return directory.coordinator(coordinator);
  return directory.agent({ name: recipient });
}

/**
 * Sends a message to a conversation. A message to an agent of the workspace ends up in its inbox, or in its live
 * session if there is a gateway and the message is to be forwarded.
 *
 * @param deliver undefined: there is no gateway
 * @throws AppError 422 for a text to an agent, or to be forwarded, that tries to take over its reader; 404 when there
 *   is no such conversation
 */
export async function say(
  commands: Commands,
  context: CommandContext,
  directory: ChatDirectory,
  message: ChatMessage,
  deliver?: Deliver,
): Promise<EventOf<typeof chatMessageSent>> {
  const { workspace } = context.origin;
  const { content, from, forward } = message;
  const target = await targetOf(directory, message);
  const recipient = message.recipient ?? target?.name;
  const named = message.ownSessionsOnly ? undefined : message.session_key;
  const session = forward && deliver ? (named ?? target?.session_key ?? undefined) : undefined;
  if (target || (forward && recipient !== undefined) || session !== undefined) refuseInjection('The message', content);

  const messageId = await reserveId(commands, context, 'message', (id) => `chat_message-${workspace}-${id}`);
  const conversation = await conversationOf(directory, message.conversation, messageId);
  const to = recipient ?? null;
  const handed = { workspace, id: messageId, from, to, content, conversation: conversation.key };
  const sent = session !== undefined && deliver ? { session, answer: await deliver(session, handed) } : undefined;
  const outcome = forward ? forwardOf(recipient, target, sent) : undefined;
  const told = outcome && reports(conversation.key, outcome) ? outcome : undefined;
  const report = told && { message_id: await commands.counters.take('message'), forward: told };
  const data = {
    message_id: messageId,
    from,
    from_agent_id:
      message.fromId === undefined ? ((await directory.agent({ name: from }))?.id ?? null) : message.fromId,
    to,
    recipient_id: target?.name === to ? target.id : null,
    // A message that the agent's session has received need not be in its inbox.
    to_agent_id: sent?.answer ? null : (target?.id ?? null),
    content,
    message_type: message.message_type,
    metadata: outcome ? { ...message.metadata, forwardInfo: outcome } : message.metadata,
  };
  const stream = `chat-${workspace}-${encodeURIComponent(conversation.key)}`;
  const decide = (state: { readonly id: number }) => decideSay(state, conversation, data, report);
  // The id of an existing conversation is known, so no decision is necessary.
  const { events } =
    conversation.id === 0
      ? await commands.execute(chatDecider, stream, context, decide, { fresh: true })
      : await commands.record(stream, context, decide({ id: conversation.id }));
  // In a repeated request, this is the message of the first run.
  return firstOf(events, chatMessageSent) as EventOf<typeof chatMessageSent>;
}

/** Marks a message as read now. @returns that time, Unix ms */
export async function readMessage(
  commands: Commands,
  context: CommandContext,
  message: {
    readonly id: number;
    readonly conversation: string;
    readonly to: string | null;
    readonly recipient_id: number | null;
  },
): Promise<number> {
  const { id: messageId, conversation, to, recipient_id } = message;
  const stream = `chat_message-${context.origin.workspace}-${messageId}`;
  const { events } = await commands.execute(chatReadDecider, stream, context, (state) => [
    chatMessageRead.draft({ message_id: messageId, conversation, to, recipient_id, first: !state.read }),
  ]);
  return (firstOf(events, chatMessageRead) as EventOf<typeof chatMessageRead>).meta.at;
}
