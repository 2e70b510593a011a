/** Notifications from the read models, for commands that change them. */
import type { NotificationRecord } from '../../events/monitoring/notifications.ts';
import type { RecordPlace } from '../read-models.ts';

/** A pending notification, and whether its recipient exists. */
export interface PendingNotification extends Omit<NotificationRecord, 'workspace_id'> {
  /** The agent with this name, if there is one. */
  readonly agent: { readonly id: number; readonly session_key: string | null } | null;
  /** Whether there is a user with this name, or it stands for the operators. */
  readonly isPerson: boolean;
}

/** A selection of notifications: by recipient, by ids, or by both. */
export type Some =
  | { readonly recipient: string; readonly ids?: undefined }
  | { readonly ids: readonly number[]; readonly recipient: string | undefined };

export interface NotificationDirectory {
  /** Unread notifications; at most `limit`. */
  unread(workspace: number, of: Some, limit: number): Promise<number[]>;
  /** Ids of notifications that a recipient has not received yet. */
  undelivered(workspace: number, recipient: string, limit: number): Promise<number[]>;
  /** Those of the ids that exist. */
  existing(workspace: number, ids: readonly number[]): Promise<number[]>;
  /** Notifications of a recipient, created before `before`, Unix seconds. */
  older(workspace: number, recipient: string, before: number, limit: number): Promise<number[]>;
  /**
   * Pending notifications, oldest first; those that cannot be delivered come last, so that they never block the others.
   */
  pending(workspace: number, recipient: string | undefined, limit: number): Promise<PendingNotification[]>;
  /** Notifications of all workspaces, created before `before`, Unix seconds; the oldest `limit`. */
  expired(before: number, limit: number): Promise<readonly RecordPlace[]>;
}
