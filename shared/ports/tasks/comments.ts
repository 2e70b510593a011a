/** Comments from the read models. A comment is deleted only with its task, so a comment that was found stays. */
export interface CommentDirectory {
  /** A comment on this task; undefined when it has no such comment. `depth`: how many are above it in its thread. */
  find(workspace: number, taskId: number, commentId: number): Promise<{ readonly depth: number } | undefined>;
}
