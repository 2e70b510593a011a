/** Comments as the read models have them. No comment goes before its task does, so what is found there stays. */
export interface CommentDirectory {
  /** A comment on this task; undefined when it has none such. `depth`: how many stand above it in its thread. */
  find(workspace: number, taskId: number, commentId: number): Promise<{ readonly depth: number } | undefined>;
}
