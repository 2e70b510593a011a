/** Once a day, removes rows from the lists that are older than the settings allow. */
import { expiredNotifications } from '../../../queries/monitoring/notifications.ts';
import type { Reads } from '../../../queries/reads.ts';
import { allWorkspaces } from '../../../queries/workspaces/workspaces.ts';
import type { SettingName } from '../../../shared/contract/admin/settings.ts';
import { CLEANUP_STREAM, oldRecordsRemoved } from '../../../shared/events/admin/cleanup.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../../shared/events/metadata.ts';
import { notificationsDeleted } from '../../../shared/events/monitoring/notifications.ts';
import { newId } from '../../../shared/ids.ts';
import { DAY, seconds } from '../../../shared/time.ts';
import { type Cleaning, cleanUp as cleanUpOne } from '../../admin/cleanup.ts';
import { removeOldSummaries } from '../../agents/leases.ts';
import type { Commands } from '../../handler.ts';
import { notificationsStream } from '../../monitoring/notifications.ts';
import { scheduledContext } from '../../policies/policy.ts';
import { counted, EVERY_MINUTE_MS, EVERY_TEN_MINUTES_MS, isOn, type Schedule, type Setting } from '../schedule.ts';

/** Records in one event. */
const BATCH = 100;

/**
 * @returns the number of removed notifications
 *
 * @param parts.notificationDays how long notifications are kept; 0: for ever
 * @param parts.deadline Unix ms: the rest is left to the next turn
 * @param parts.now Unix ms
 */
export async function cleanUp(parts: {
  readonly commands: Commands;
  readonly reads: Reads;
  readonly notificationDays: number;
  readonly deadline: number;
  readonly now: () => number;
}): Promise<number> {
  const { commands, reads, notificationDays, now } = parts;
  if (notificationDays === 0) return 0;
  const run = newId();
  const before = seconds(now()) - notificationDays * DAY;
  let removed = 0;
  while (now() < parts.deadline) {
    const expired = await expiredNotifications(reads, before, BATCH);
    const places = new Map<number, { readonly tenant: number; readonly ids: number[] }>();
    for (const { workspace, tenant, id } of expired) {
      const place = places.get(workspace) ?? { tenant, ids: [] };
      place.ids.push(id);
      places.set(workspace, place);
    }
    for (const [workspace, { tenant, ids }] of places) {
      await commands.record(notificationsStream(workspace), scheduledContext(run, tenant, workspace), [
        notificationsDeleted.draft({ notification_ids: ids, cause: 'retention' }),
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

/** Further tables that are cleaned every day: by workspace, each with its own event. */
export type CleanedTable = 'activities' | 'pipeline_runs' | 'token_usage' | 'audit_log';
const NOUNS: Readonly<Record<CleanedTable, readonly [one: string, many: string]>> = {
  activities: ['activity', 'activities'],
  pipeline_runs: ['pipeline run', 'pipeline runs'],
  token_usage: ['token report', 'token reports'],
  audit_log: ['audit entry', 'audit entries'],
};
const CLEANED = Object.keys(NOUNS) as CleanedTable[];

/**
 * Removes rows that are older than the settings allow from the other read models.
 *
 * @returns their number by table
 * @param parts.retention days by table; 0: for ever
 * @param parts.deadline Unix ms: workspaces not started by then are left to the next turn
 */
export async function cleanUpWorkspaces(parts: {
  readonly cleaning: Cleaning;
  readonly workspaces: readonly { readonly id: number; readonly tenant: number }[];
  readonly retention: Readonly<Record<CleanedTable, number>>;
  readonly deadline: number;
}): Promise<Readonly<Record<CleanedTable, number>>> {
  const { cleaning, workspaces, retention, deadline } = parts;
  const run = newId();
  const removed = { activities: 0, pipeline_runs: 0, token_usage: 0, audit_log: 0 };
  for (const { id, tenant } of workspaces) {
    if (cleaning.now() >= deadline) break;
    const { results } = await cleanUpOne(cleaning, scheduledContext(run, tenant, id), retention, 'schedule');
    for (const table of CLEANED) removed[table] += results.find((one) => one.table === table)?.deleted ?? 0;
  }
  return removed;
}

/** Maximum duration of one turn, milliseconds. */
const CLEANUP_MS = 3 * EVERY_MINUTE_MS;

export function cleanupSchedule(parts: {
  readonly commands: Commands;
  readonly reads: Reads;
  readonly setting: Setting;
  /** How far back reads may go, days; 0: to the beginning. */
  readonly historyDays: number;
  readonly now: () => number;
}): Schedule {
  const { commands, reads, setting, historyDays, now } = parts;
  const days = async (name: SettingName) => Number(await setting(name));
  return {
    id: 'auto_cleanup',
    kind: 'auto-cleanup',
    name: 'Remove old notifications, activities, pipeline runs, token reports and audit entries',
    everyMs: EVERY_TEN_MINUTES_MS,
    dailyAt: 4,
    enabled: isOn(setting, 'general.auto_cleanup'),
    async run() {
      const notificationDays = await days('retention.notifications_days');
      const deadline = now() + CLEANUP_MS;
      const removed = await cleanUp({ commands, reads, notificationDays, deadline, now });
      const retention = { activities: 0, pipeline_runs: 0, token_usage: 0, audit_log: 0 };
      for (const table of CLEANED) retention[table] = await days(`retention.${table}_days`);
      const workspaces = await allWorkspaces(reads);
      const others = await cleanUpWorkspaces({
        cleaning: { commands, reads, now },
        workspaces,
        retention,
        deadline,
      });
      const summaries = await removeOldSummaries({ commands, reads }, workspaces, { days: historyDays, deadline, now });
      const all = [
        counted(removed, 'notification', 'notifications'),
        ...CLEANED.filter((table) => others[table] > 0).map((table) => counted(others[table], ...NOUNS[table])),
        ...(summaries > 0 ? [counted(summaries, 'summary of heartbeats', 'summaries of heartbeats')] : []),
      ];
      return `${all.join(', ')} ${all.length === 1 && removed === 1 ? 'was' : 'were'} removed.`;
    },
  };
}
