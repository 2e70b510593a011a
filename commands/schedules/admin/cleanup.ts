/** Removes what is older than the settings allow from the lists, once a day. */
import { randomUUID } from 'node:crypto';
import { CLEANUP_STREAM, oldRecordsRemoved } from '../../../shared/events/admin/cleanup.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../../shared/events/metadata.ts';
import { notificationsDeleted } from '../../../shared/events/monitoring/notifications.ts';
import type { NotificationDirectory } from '../../../shared/ports/monitoring/notifications.ts';
import { DAY, seconds } from '../../../shared/time.ts';
import { type Cleaning, cleanUp as cleanUpOne } from '../../admin/cleanup.ts';
import type { Commands } from '../../handler.ts';
import { notificationsStream } from '../../monitoring/notifications.ts';
import { scheduledContext } from '../../policies/policy.ts';

/** Records in one event. */
const BATCH = 1_000;

/**
 * Gives the number of notifications that were removed.
 *
 * @param parts.notificationDays how long notifications are kept; 0: for ever
 * @param parts.deadline Unix ms: what is not done by then is for the next turn
 * @param parts.now Unix ms
 */
export async function cleanUp(parts: {
  readonly commands: Commands;
  readonly notifications: Pick<NotificationDirectory, 'expired'>;
  readonly notificationDays: number;
  readonly deadline: number;
  readonly now: () => number;
}): Promise<number> {
  const { commands, notifications, notificationDays, now } = parts;
  if (notificationDays === 0) return 0;
  const run = randomUUID();
  const before = seconds(now()) - notificationDays * DAY;
  let removed = 0;
  while (now() < parts.deadline) {
    const expired = await notifications.expired(before, BATCH);
    const places = new Map<number, { readonly tenant: number; readonly ids: number[] }>();
    for (const { workspace, tenant, id } of expired) {
      const place = places.get(workspace) ?? { tenant, ids: [] };
      place.ids.push(id);
      places.set(workspace, place);
    }
    for (const [workspace, { tenant, ids }] of places) {
      await commands.record(notificationsStream(workspace), scheduledContext(run, tenant, workspace), [
        notificationsDeleted.draft({ notificationIds: ids, cause: 'retention' }),
      ]);
    }
    removed += expired.length;
    if (expired.length < BATCH) break;
  }
  if (removed > 0) {
    await commands.record(CLEANUP_STREAM, scheduledContext(run, DEFAULT_TENANT, DEFAULT_WORKSPACE), [
      oldRecordsRemoved.draft({ notifications: removed }),
    ]);
  }
  return removed;
}

/** What else is removed every day: by workspace, each with an event of its own that says what. */
export const CLEANED = ['activities', 'pipeline_runs', 'token_usage', 'audit_log'] as const;
export type CleanedTable = (typeof CLEANED)[number];

/**
 * Removes rows that are older than the settings allow from the other read models. Gives how many of each.
 *
 * @param parts.retention days by table; 0: for ever
 * @param parts.deadline Unix ms: workspaces that are not begun by then are for the next turn
 */
export async function cleanUpWorkspaces(parts: {
  readonly cleaning: Cleaning;
  readonly workspaces: readonly { readonly id: number; readonly tenant: number }[];
  readonly retention: Readonly<Record<CleanedTable, number>>;
  readonly deadline: number;
}): Promise<Readonly<Record<CleanedTable, number>>> {
  const { cleaning, workspaces, retention, deadline } = parts;
  const run = randomUUID();
  const removed = { activities: 0, pipeline_runs: 0, token_usage: 0, audit_log: 0 };
  for (const { id, tenant } of workspaces) {
    if (cleaning.now() >= deadline) break;
    const { results } = await cleanUpOne(cleaning, scheduledContext(run, tenant, id), retention, 'schedule');
    for (const table of CLEANED) removed[table] += results.find((one) => one.table === table)?.deleted ?? 0;
  }
  return removed;
}
