/** Comments on tasks: who subscribes to the task and is notified because of one, and whom it assigns the task to. */
import type { Reads } from '../../queries/reads.ts';
import { findComment } from '../../queries/tasks/comments.ts';
import type { CommentRecord, NewComment } from '../../shared/contract/tasks/comments.ts';
import { invalid, notFound } from '../../shared/errors.ts';
import { type EventDraft, type EventOf, firstOf } from '../../shared/events/define.ts';
import { notificationRaised } from '../../shared/events/monitoring/notifications.ts';
import { taskAssigned, taskCommented } from '../../shared/events/tasks/comments.ts';
import { frontOf } from '../../shared/storable.ts';
import { seconds } from '../../shared/time.ts';
import { arrival, type CommandContext, type Commands } from '../handler.ts';
import { type Mentioned, mentionedIn } from '../mentions.ts';
import { requireAccess, type TaskCaller } from './access.ts';
import {
  decideSubscribe,
  existing,
  moved,
  ofTask,
  type TaskState,
  taskDecider,
  taskStream,
  tellAssignee,
} from './tasks.ts';

/** Characters of a comment that a notification quotes. */
const QUOTED = 100;

/** The beginning of a text, with a mark if it is truncated. */
export const quoted = (text: string): string => (text.length > QUOTED ? `${frontOf(text, QUOTED)}...` : text);

/** Maximum number of comments per task, so that all of them fit into one response. */
export const MAX_COMMENTS = { count: 10_000, characters: 8_000_000 };
/** Maximum depth of replies: deeper threads could not be read as one JSON document. */
export const MAX_DEPTH = 100;

export interface Comment {
  readonly id: number;
  readonly parent_id: number | null;
  readonly depth: number;
  readonly author: string;
  readonly content: string;
  readonly mentioned: Mentioned;
}

/** @throws AppError 400 when the task or the thread takes no more comments, 404 */
export function decideComment(state: TaskState, comment: Comment): EventDraft[] {
  const { task, comments } = existing(state);
  const { author, content, mentioned } = comment;
  if (isFull(comments, content))
    throw invalid(
      `A task takes at most ${MAX_COMMENTS.count} comments, and ${MAX_COMMENTS.characters} characters in all of them together; continue in a new task.`,
    );
  if (comment.depth > MAX_DEPTH)
    throw invalid(`Replies can be nested at most ${MAX_DEPTH} levels deep; reply to a comment further up.`, [
      'parent_id: is too deep in its thread',
    ]);
  const commented = taskCommented.draft({
    ...ofTask(state),
    comment_id: comment.id,
    parent_id: comment.parent_id,
    depth: comment.depth,
    author,
    content,
    mentions: [...mentioned.tokens],
  });
  const assignment = assignToMentioned(state, comment);
  const assignee = task.assigned_to ?? (assignment.length > 0 ? (mentioned.agents[0] as string) : null);
  const followers = [author, ...mentioned.recipients, ...(assignee === null ? [] : [assignee])];
  const subscribed = decideSubscribe(state, followers);
  const now = subscribed.reduce((before, draft) => taskDecider.evolve(before, { at: 0, ...draft }), state);
  const told = now.subscribers.filter((name) => name !== author);
  return [
    commented,
    ...assignment,
    ...subscribed,
    ...told.map((recipient) =>
      mentioned.recipients.includes(recipient)
        ? notice(comment, recipient, 'mention', 'You were mentioned', `mentioned you in a comment on "${task.title}"`)
        : notice(comment, recipient, 'comment', 'New comment', `commented on "${task.title}"`),
    ),
  ];
}

/** A comment without notifications, because subscribers see its subject; no event if there is no room. */
export function commentFrom(
  state: TaskState,
  { id, author, content }: Pick<Comment, 'id' | 'author' | 'content'>,
): EventDraft[] {
  if (isFull(state.comments, content)) return [];
  const first = { comment_id: id, parent_id: null, depth: 0 };
  return [taskCommented.draft({ ...ofTask(state), ...first, author, content, mentions: [] })];
}

const isFull = ({ count, characters }: TaskState['comments'], content: string): boolean =>
  count >= MAX_COMMENTS.count || characters + content.length > MAX_COMMENTS.characters;

/** An unassigned task is assigned to the first mentioned agent. */
function assignToMentioned(state: TaskState, { author, mentioned }: Comment): EventDraft[] {
  const { id, task } = state;
  const [agent] = mentioned.agents;
  if (task.assigned_to !== null || agent === undefined) return [];
  const status = task.status === 'inbox' ? 'assigned' : task.status;
  return [
    taskAssigned.draft({ ...moved(state, { assigned_to: agent, status }), trigger: 'mention', by: author }),
    ...tellAssignee(id, { ...task, assigned_to: agent }),
  ];
}

const notice = (
  { id, author, content }: Comment,
  recipient: string,
  type: string,
  title: string,
  what: string,
): EventDraft =>
  notificationRaised.draft({
    recipient,
    type,
    title,
    message: `${author} ${what}: ${quoted(content)}`,
    source_type: 'comment',
    source_id: id,
    by: author,
  });

/**
 * Adds a comment.
 *
 * @returns its record, and the agent to which it assigned the task
 * @throws AppError 400 for unknown mentions, 403, 404 for the task or the comment that it replies to, 409
 */
export async function addComment(
  commands: Commands,
  context: CommandContext,
  reads: Reads,
  taskId: number,
  { content, parent_id }: Pick<NewComment, 'content' | 'parent_id'>,
  author: string,
  caller: TaskCaller,
): Promise<{ readonly comment: CommentRecord; readonly assigned_to: string | undefined }> {
  const { workspace } = context.origin;
  const stream = taskStream(workspace, taskId);
  const parentId = parent_id || null;
  let depth = 0;
  let mentioned: Mentioned = { tokens: [], recipients: [], agents: [] };
  if (parentId !== null || content.includes('@')) {
    // Check that the task exists and is open to the caller before reporting errors in the comment.
    requireAccess(caller, existing((await commands.load(taskDecider, stream, arrival(context))).state));
    if (parentId !== null) {
      const parent = await findComment(reads, workspace, taskId, parentId);
      if (!parent) throw notFound(`Comment ${parentId} on this task`);
      depth = parent.depth + 1;
    }
    mentioned = await mentionedIn(reads, workspace, content);
  }
  const id = await commands.counters.take('comment');
  const { events } = await commands.execute(taskDecider, stream, context, (state) => {
    requireAccess(caller, existing(state));
    return decideComment(state, { id, parent_id: parentId, depth, author, content, mentioned });
  });
  // A repeated request has the id of the first run.
  const { data, meta } = firstOf(events, taskCommented) as EventOf<typeof taskCommented>;
  return {
    comment: {
      id: data.comment_id,
      task_id: taskId,
      author: data.author,
      content: data.content,
      created_at: seconds(meta.at),
      parent_id: data.parent_id,
      mentions: data.mentions,
      workspace_id: workspace,
      replies: [],
    },
    assigned_to: firstOf(events, taskAssigned)?.data.after.assigned_to ?? undefined,
  };
}
