/** Tasks for the agent runner, as the read models have them. */

/** A task that the runner could be asked about. */
export interface WaitingTask {
  readonly tenant: number;
  readonly workspace: number;
  readonly id: number;
}

/** @property unanswered how many tasks of its workspace the runner has been asked for, and has not answered */
export interface NextTask extends WaitingTask {
  readonly unanswered: number;
}

export interface DispatchReads {
  /**
   * Tasks that are assigned to agents, most urgent first, then the oldest; none that others are made from. Of each
   * workspace at most `limit`.
   */
  assigned(limit: number): Promise<readonly (NextTask & { readonly agent_id: number; readonly agent: string })[]>;
  /** The same of tasks that wait for a review, those that were not changed for the longest time first. */
  reviewable(limit: number): Promise<readonly NextTask[]>;
  /**
   * Tasks that the runner was asked for and that were not changed after `since` (Unix seconds): dispatches that it has
   * not answered, reviews without a verdict. At most `limit`.
   */
  forgotten(what: 'dispatch' | 'review', since: number, limit: number): Promise<readonly WaitingTask[]>;
  /** Undefined: there is none of this name. */
  agent(
    workspace: number,
    name: string,
  ): Promise<{ readonly id: number; readonly name: string; readonly role: string } | undefined>;
  /** Prefix of a project's tickets. */
  prefix(workspace: number, project: number): Promise<string>;
  /** Why the gatekeeper sent the task back, the last time; null: it has not, or has approved the task since. */
  rejection(workspace: number, task: number): Promise<string | null>;
}
