/**
 * Leases of agents: heartbeats that change nothing, before the log has their summary. One row per agent says how many
 * there were in the open window, and when. Closing a window freezes its numbers, until its summary is in the log and
 * shown by the read model (docs/adr/0049-liveness-is-a-lease.md). Times in Unix seconds.
 */

export interface AgentPlace {
  readonly tenant: number;
  readonly workspace: number;
  readonly agent: number;
}

export interface Beat extends AgentPlace {
  readonly at: number;
  /** The agent's open connection, if the heartbeat named it. */
  readonly connection: string | null;
  /** The agent's stream, and its revision when the heartbeat was found to change nothing; default: it is not checked. */
  readonly unlessMoved?: { readonly stream: string; readonly revision: number };
}

/** Heartbeats of an agent in a closed window. */
export interface ClosedLease {
  readonly agent: number;
  readonly beats: number;
  readonly first: number;
  readonly last: number;
  /** The connection that some of them named, and when it was named last. */
  readonly connection: string | null;
  readonly connectionAt: number | null;
}

export interface LeaseWindow {
  readonly tenant: number;
  readonly workspace: number;
  readonly window: number;
}

export interface Leases {
  /**
   * Counts a heartbeat. Resolves when that is durable.
   *
   * @returns false when nothing was counted, because the stream has moved, the lease was revoked, or it has another
   *   connection of the agent that was not summed up yet. If the stream has not moved, the heartbeat must be an event
   */
  renew(beat: Beat): Promise<boolean>;
  /** Whether the log is in the same database, so that a renewal can check whether a stream has moved. */
  readonly seesLog: boolean;
  /**
   * Revokes the lease of an agent without a heartbeat after `since`, so that a later heartbeat is an event, which
   * conflicts with a decision that the agent is silent.
   *
   * @param connection only heartbeats that named this connection count
   * @returns the agent's last heartbeat (0: none); undefined when there was one after `since`
   */
  revoke(place: AgentPlace, since: number, connection?: string): Promise<number | undefined>;
  /** Allows the agent to renew its lease again. */
  grant(place: AgentPlace): Promise<void>;
  /** Closes the open windows of a workspace, or of all. */
  close(workspace: number | 'all'): Promise<void>;
  /** Closes the open window of an agent. @returns undefined when it has no heartbeats, or is in a closed window */
  closeOne(place: AgentPlace): Promise<LeaseWindow | undefined>;
  /** Closed windows, the oldest first. */
  closed(workspace: number | 'all'): Promise<readonly LeaseWindow[]>;
  /** Leases of a closed window by agent, after `after`; at most `limit`. */
  leasesOf(window: LeaseWindow, after: number, limit: number): Promise<readonly ClosedLease[]>;
  /** Forgets a closed window, whose summary every read shows. */
  settle(window: LeaseWindow): Promise<void>;
}
