/**
 * Removal of old rows from read models.
 *
 * Events remove rows: each names a limited number of rows. So a rebuilt read model ends with the same rows, and the
 * cost of each event is bounded. Each event is decided on the read models after the previous event: two concurrent
 * removals never name the same row, which the stored totals depend on.
 */
import { countExpired, expiredEntries, expiredReports, expiredRows } from '../../queries/admin/cleanup.ts';
import type { Reads } from '../../queries/reads.ts';
import {
  auditEntriesPurged,
  RETAINED,
  type Retained,
  recordsPurged,
  retentionApplied,
} from '../../shared/events/admin/cleanup.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { tokenReportsPurged } from '../../shared/events/tokens/reports.ts';
import { DAY, seconds } from '../../shared/time.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { withoutIntents } from '../intents.ts';

/** Rows that one event removes. */
const CHUNK = 100;
/** Rows of a table that one call removes. */
export const MOST_ROWS = 50_000;

export interface RetentionState {
  /** Events that have removed rows. */
  readonly purges: number;
}

export const retentionStream = (workspace: number): string => `retention-${workspace}`;

export const retentionDecider = defineDecider<RetentionState>({
  kind: 'removal of old rows',
  initial: { purges: 0 },
  snapshotVersion: 2,
  folds: [on([recordsPurged, tokenReportsPurged, auditEntriesPurged], ({ purges }) => ({ purges: purges + 1 }))],
});

export interface Cleaning {
  readonly commands: Commands;
  readonly reads: Reads;
  /** Unix ms. */
  readonly now: () => number;
  readonly signal?: AbortSignal;
}

/** Days by table; a table without a number, or with 0, keeps its rows. */
export type Retention = Readonly<Partial<Record<Retained, number>>>;

export interface Cleaned {
  readonly table: Retained;
  readonly deleted: number;
  /** Unix seconds. */
  readonly cutoff: number;
  readonly retention_days: number;
}

/** The tables from which rows are removed, each with its number of days and its cut-off time. */
const targetsOf = (retention: Retention, now: number) =>
  RETAINED.flatMap((table) => {
    const retentionDays = retention[table] ?? 0;
    return retentionDays === 0
      ? []
      : [{ table, retention_days: retentionDays, cutoff: seconds(now) - retentionDays * DAY }];
  });

/** How many rows a removal would remove. */
export async function previewCleanup(
  { reads, now }: Pick<Cleaning, 'reads' | 'now'>,
  workspace: number,
  retention: Retention,
): Promise<Cleaned[]> {
  const found: Cleaned[] = [];
  for (const target of targetsOf(retention, now()))
    found.push({ ...target, deleted: await countExpired(reads, workspace, target.table, target.cutoff) });
  return found;
}

/** Removes old rows of the context's workspace, and records the removal. `complete`: no old rows are left. */
export async function cleanUp(
  cleaning: Cleaning,
  context: CommandContext,
  retention: Retention,
  cause: 'request' | 'schedule',
): Promise<{ readonly results: readonly Cleaned[]; readonly complete: boolean }> {
  const results: Cleaned[] = [];
  let complete = true;
  for (const target of targetsOf(retention, cleaning.now())) {
    let deleted = 0;
    while (deleted < MOST_ROWS) {
      cleaning.signal?.throwIfAborted();
      const some = await purge(cleaning, context, target);
      deleted += some;
      if (some < CHUNK) break;
    }
    if (deleted >= MOST_ROWS) complete = false;
    results.push({ ...target, deleted });
  }
  if (results.some(({ deleted }) => deleted > 0)) {
    const stream = retentionStream(context.origin.workspace);
    await cleaning.commands.record(stream, withoutIntents(context), [retentionApplied.draft({ cause, results })]);
  }
  return { results, complete };
}

/** Removes the oldest rows of a table. @returns how many */
async function purge(
  { commands, reads }: Cleaning,
  context: CommandContext,
  { table, cutoff }: { readonly table: Retained; readonly cutoff: number },
): Promise<number> {
  const { workspace } = context.origin;
  const stream = retentionStream(workspace);
  for (;;) {
    let known = 0;
    // Without an event, the command waits until the read models show every removal so far.
    await commands.execute(retentionDecider, stream, withoutIntents(context), ({ purges }) => {
      known = purges;
      return [];
    });
    const { rows, draft } = await oldest(reads, workspace, table, cutoff);
    if (rows === 0) return 0;
    const { events } = await commands.execute(retentionDecider, stream, withoutIntents(context), ({ purges }) =>
      purges === known ? [draft] : [],
    );
    if (events.length > 0) return rows;
  }
}

/** The oldest rows of a table, up to the limit of one event, and the event that removes them. */
async function oldest(
  reads: Reads,
  workspace: number,
  table: Retained,
  cutoff: number,
): Promise<{ readonly rows: number; readonly draft: EventDraft }> {
  if (table === 'token_usage') {
    const found = await expiredReports(reads, workspace, cutoff, CHUNK);
    return { rows: found.ids.length, draft: tokenReportsPurged.draft(found) };
  }
  if (table === 'audit_log') {
    const found = await expiredEntries(reads, workspace, cutoff, CHUNK);
    return { rows: found.ids.length, draft: auditEntriesPurged.draft(found) };
  }
  const found = await expiredRows(reads, workspace, table, cutoff, CHUNK);
  return { rows: found.ids.length, draft: recordsPurged.draft({ table, ...found }) };
}
