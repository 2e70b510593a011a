/** Unassigned tasks, and agents that could get them. */
import type { RecordPlace } from '../read-models.ts';

/** An agent that is neither hidden nor offline, and has no error. */
export interface RoutableAgent {
  readonly name: string;
  readonly role: string;
  readonly status: string;
  /** Its config's `capabilities`. */
  readonly capabilities: readonly string[];
  /** Tasks that it works on. */
  readonly inProgress: number;
  /** Tasks that wait for it. */
  readonly assigned: number;
}

export interface RoutingReads {
  /** Tasks in the inboxes of workspaces that have such agents: at most `limit` per workspace, most urgent first. */
  unassigned(limit: number): Promise<readonly RecordPlace[]>;
  /** Such agents of a workspace, by name; at most `limit`. */
  agents(workspace: number, limit: number): Promise<readonly RoutableAgent[]>;
}
