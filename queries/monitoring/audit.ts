/** The audit trail with its filters. */
import { sql } from 'kysely';
import { auditProjection } from '../../projections/monitoring/audit.ts';
import { type AuditEntry, type AuditQuery, auditEntrySchema } from '../../shared/contract/monitoring/audit.ts';
import { fieldNames } from '../../shared/fields.ts';
import { inWorkspace, jsonFields, placeOfPage, prepared, type Reads, upToSize } from '../reads.ts';

const FIELDS = sql.raw(jsonFields('p', fieldNames(auditEntrySchema)));

/** A page of audit entries, newest first; list and total in one statement, so that both show the same moment. */
export async function listAudit(reads: Reads, workspace: number, query: AuditQuery) {
  const { action, actor, since, until, limit, offset } = query;
  let page = inWorkspace(reads, auditProjection, 'audit', workspace).selectAll();
  if (action !== undefined) page = page.where('action', '=', action);
  if (actor !== undefined) page = page.where('actor', '=', actor);
  if (since !== undefined) page = page.where('created_at', '>=', since);
  if (until !== undefined) page = page.where('created_at', '<=', until);
  const total = totalOf(reads, workspace, query);
  const { known, size, skip, fromEnd } = await placeOfPage(query, () => total.executeTakeFirst());
  page = page
    .orderBy('position', fromEnd ? 'asc' : 'desc')
    .limit(size)
    .offset(skip);
  const { rows } = await sql<{ entries: AuditEntry[] | null; total: number }>`${prepared}
    WITH page AS (${upToSize(page, sql`position DESC`)})
    SELECT ${known === undefined ? sql`(${total})` : sql`${known}::bigint`} AS total, json_agg(json_build_object(${FIELDS}) ORDER BY p.position DESC) AS entries
    FROM page p`.execute(reads.db);
  return { entries: rows[0]?.entries ?? [], total: Number(rows[0]?.total ?? 0), limit, offset };
}

function totalOf(reads: Reads, workspace: number, { action, actor, since, until }: AuditQuery) {
  if (since === undefined && until === undefined && actor === undefined) {
    let counts = inWorkspace(reads, auditProjection, 'audit_counts', workspace).select(({ fn }) =>
      fn.coalesce(fn.sum<number>('count'), sql<number>`0`).as('total'),
    );
    if (action !== undefined) counts = counts.where('action', '=', action);
    return counts;
  }
  let counted = inWorkspace(reads, auditProjection, 'audit', workspace).select(({ fn }) =>
    fn.countAll<number>().as('total'),
  );
  if (action !== undefined) counted = counted.where('action', '=', action);
  if (actor !== undefined) counted = counted.where('actor', '=', actor);
  if (since !== undefined) counted = counted.where('created_at', '>=', since);
  if (until !== undefined) counted = counted.where('created_at', '<=', until);
  return counted;
}
