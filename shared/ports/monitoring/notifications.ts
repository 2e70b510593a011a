/** Notifications as the read models have them, for commands: which of them a change is about. */

/** A pending notification, and whether its recipient exists. */
export interface PendingNotification {
  readonly id: number;
  readonly recipient: string;
  readonly type: string;
  readonly title: string;
  readonly message: string;
  readonly source_type: string | null;
  readonly source_id: number | null;
  /** Unix seconds. */
  readonly created_at: number;
  /** The agent of this name, if there is one. */
  readonly agent: { readonly id: number; readonly session_key: string | null } | null;
  /** A user of this name, or the operators. */
  readonly isPerson: boolean;
}

/** Some notifications: those of a recipient, those with some ids, or what is both. */
export type Some =
  | { readonly recipient: string; readonly ids?: undefined }
  | { readonly ids: readonly number[]; readonly recipient: string | undefined };

export interface NotificationDirectory {
  /** Unread ones; `limit` of them at most. */
  unread(workspace: number, of: Some, limit: number): Promise<number[]>;
  /** Ids of those that a recipient has not got yet. */
  undelivered(workspace: number, recipient: string, limit: number): Promise<number[]>;
  /** Those of the ids that exist. */
  existing(workspace: number, ids: readonly number[]): Promise<number[]>;
  /** Of a recipient, created before `before`, Unix seconds. */
  older(workspace: number, recipient: string, before: number, limit: number): Promise<number[]>;
  /**
   * What is to be delivered, oldest first; those that nobody can get come last, so that they never stand in the way of
   * the others.
   */
  pending(workspace: number, recipient: string | undefined, limit: number): Promise<PendingNotification[]>;
  /** In all workspaces, created before `before`, Unix seconds; the oldest `limit`. */
  expired(
    before: number,
    limit: number,
  ): Promise<readonly { readonly workspace: number; readonly tenant: number; readonly id: number }[]>;
}
