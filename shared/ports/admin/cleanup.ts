/** The port of retention: rows of read models that have expired. */
import type { auditEntriesPurged, Retained, recordsPurged } from '../../events/admin/cleanup.ts';
import type { EventOf } from '../../events/define.ts';
import type { tokenReportsPurged } from '../../events/tokens/reports.ts';

/** The data of an event about the rows that it removes. */
export type Expired = Omit<EventOf<typeof recordsPurged>['data'], 'table'>;
export type ExpiredReports = EventOf<typeof tokenReportsPurged>['data'];
export type ExpiredEntries = EventOf<typeof auditEntriesPurged>['data'];

/** Tables whose rows are removed by a separate type of event. */
type Special = 'token_usage' | 'audit_log';

export interface RetentionReads {
  /** Rows created before `cutoff` (Unix seconds), oldest first, without runs that have not ended. */
  expired(workspace: number, table: Exclude<Retained, Special>, cutoff: number, limit: number): Promise<Expired>;
  /** Token reports from before `cutoff` (Unix seconds), oldest first. */
  expiredReports(workspace: number, cutoff: number, limit: number): Promise<ExpiredReports>;
  /** Audit entries from before `cutoff` (Unix seconds), oldest first. */
  expiredEntries(workspace: number, cutoff: number, limit: number): Promise<ExpiredEntries>;
  count(workspace: number, table: Retained, cutoff: number): Promise<number>;
}
