/** Tasks for the agent runner, from the read models. */

import type { RecordPlace } from '../read-models.ts';

/** @property unanswered number of tasks of its workspace that the runner was asked for and has not responded to */
export interface NextTask extends RecordPlace {
  readonly unanswered: number;
}

export interface DispatchReads {
  /**
   * Tasks that are assigned to agents, most urgent first, then the oldest; without templates of recurring tasks. At
   * most `limit` per workspace.
   */
  assigned(limit: number): Promise<readonly (NextTask & { readonly agent_id: number; readonly agent: string })[]>;
  /** The same for tasks that wait for a review; those that have been unchanged for the longest time come first. */
  reviewable(limit: number): Promise<readonly NextTask[]>;
  /**
   * Tasks that the runner was asked for and that have not changed after `since` (Unix seconds): dispatches without a
   * response, reviews without a verdict. At most `limit`.
   */
  forgotten(what: 'dispatch' | 'review', since: number, limit: number): Promise<readonly RecordPlace[]>;
  /** Undefined if there is no agent with this name. */
  agent(
    workspace: number,
    name: string,
  ): Promise<{ readonly id: number; readonly name: string; readonly role: string } | undefined>;
  /** Ticket prefix of a project. */
  prefix(workspace: number, project: number): Promise<string>;
  /** The gatekeeper's last reason for sending the task back; null: it has not, or has approved the task since. */
  rejection(workspace: number, task: number): Promise<string | null>;
}
