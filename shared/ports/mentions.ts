/** Who can be mentioned, for commands: users and agents as the read models have them. */

/** A handle and who answers to it. */
export interface MentionTarget {
  /** What stands behind the `@`, in lower case. */
  readonly handle: string;
  /** Username, or name of the agent. */
  readonly recipient: string;
  readonly type: 'user' | 'agent';
  /** Display name of a user, or name of the agent. */
  readonly display: string;
  /** Of agents that have one. */
  readonly role?: string;
}

export interface MentionTargets {
  /** Who answers to these handles, which are in lower case; at most one for each. */
  find(workspace: number, handles: readonly string[]): Promise<readonly MentionTarget[]>;
}
