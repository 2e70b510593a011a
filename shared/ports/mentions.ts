/** Users and agents that can be mentioned, from the read models, for commands. */

/** A handle and its owner. */
export interface MentionTarget {
  /** The text after the `@`, in lower case. */
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
  /** The owners of these handles, which are in lower case; at most one for each. */
  find(workspace: number, handles: readonly string[]): Promise<readonly MentionTarget[]>;
}
