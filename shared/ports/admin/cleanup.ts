/** The port of retention: which rows of read models are too old. */
import type { auditEntriesPurged, Retained, recordsPurged } from '../../events/admin/cleanup.ts';
import type { EventOf } from '../../events/define.ts';
import type { tokenReportsPurged } from '../../events/tokens/reports.ts';

/** What an event says of the rows that it removes. */
export type Expired = Omit<EventOf<typeof recordsPurged>['data'], 'table'>;
export type ExpiredReports = EventOf<typeof tokenReportsPurged>['data'];
export type ExpiredEntries = EventOf<typeof auditEntriesPurged>['data'];

/** Tables whose rows are removed by an event of their own kind. */
type Special = 'token_usage' | 'audit_log';

export interface RetentionReads {
  /** Rows created before `cutoff` (Unix seconds), the oldest first. Runs that have not ended are none. */
  expired(workspace: number, table: Exclude<Retained, Special>, cutoff: number, limit: number): Promise<Expired>;
  /** Token reports of before `cutoff` (Unix seconds), the oldest first. */
  expiredReports(workspace: number, cutoff: number, limit: number): Promise<ExpiredReports>;
  /** Audit entries of before `cutoff` (Unix seconds), the oldest first. */
  expiredEntries(workspace: number, cutoff: number, limit: number): Promise<ExpiredEntries>;
  count(workspace: number, table: Retained, cutoff: number): Promise<number>;
}
