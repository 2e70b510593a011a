/** Messages to the agents that subscribe to a task. */
import { agentsNamed } from '../../queries/agents/agents.ts';
import type { Reads } from '../../queries/reads.ts';
import { type EventDraft, type EventOf, firstOf } from '../../shared/events/define.ts';
import { taskBroadcast } from '../../shared/events/tasks/broadcasts.ts';
import { arrival, type CommandContext, type Commands } from '../handler.ts';
import { quoted } from './comments.ts';
import { isFollower } from './subscriptions.ts';
import { existing, notice, ofTask, type TaskState, taskDecider, taskStream } from './tasks.ts';

export interface Broadcast {
  /** The caller, who does not receive the message. */
  readonly author: string;
  readonly message: string;
  /** Agents of the workspace, by name; other names are not agents. */
  readonly agents: ReadonlyMap<string, { readonly id: number; readonly name: string; readonly hasSession: boolean }>;
}

/** No event when no agent but the author subscribes to the task. @throws AppError 404 */
export function decideBroadcast(state: TaskState, { author, message, agents }: Broadcast): EventDraft[] {
  const { id, task, subscribers } = existing(state);
  const targets = subscribers.filter((name) => {
    const agent = agents.get(name);
    return name !== author && agent !== undefined && isFollower(state, agent);
  });
  if (targets.length === 0) return [];
  const reached = targets.filter((name) => agents.get(name)?.hasSession);
  return [
    taskBroadcast.draft({
      ...ofTask(state),
      author,
      message,
      sent: reached.length,
      skipped: targets.length - reached.length,
    }),
    ...reached.map((recipient) =>
      notice(id, {
        recipient,
        type: 'message',
        title: 'Task broadcast',
        message: `${author} about the task "${task.title}" (${id}): ${quoted(message)}`,
        by: author,
      }),
    ),
  ];
}

/** Sends a message to the agents that subscribe to a task. @throws AppError 404 */
export async function broadcast(
  commands: Commands,
  context: CommandContext,
  reads: Reads,
  taskId: number,
  { author, message }: Pick<Broadcast, 'author' | 'message'>,
): Promise<{ readonly sent: number; readonly skipped: number; readonly deliveredTo: readonly string[] }> {
  const { workspace } = context.origin;
  const stream = taskStream(workspace, taskId);
  const { state } = await commands.load(taskDecider, stream, arrival(context));
  const found = await agentsNamed(reads, workspace, existing(state).subscribers);
  const agents = new Map(found.map((agent) => [agent.name, agent]));
  const { events } = await commands.execute(taskDecider, stream, context, (now) =>
    decideBroadcast(now, { author, message, agents }),
  );
  const sent = firstOf(events, taskBroadcast) as EventOf<typeof taskBroadcast> | undefined;
  const deliveredTo = events.flatMap(({ type, data }) =>
    type === 'NotificationRaised' ? [String(data.recipient)] : [],
  );
  return { sent: sent?.data.sent ?? 0, skipped: sent?.data.skipped ?? 0, deliveredTo };
}
