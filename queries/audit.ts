/** The audit trail with its filters. */
import { auditCountsTable, auditProjection, auditTable } from '../projections/audit.ts';
import type { AuditQuery } from '../shared/contract/monitoring.ts';
import { type Reads, tables } from './reads.ts';

const own = (reads: Reads) => tables(reads, auditProjection, { audit: auditTable, audit_counts: auditCountsTable });

/** A page of audit entries, newest first. */
export async function listAudit(reads: Reads, workspace: number, query: AuditQuery) {
  const { action, actor, since, until, limit, offset } = query;
  let page = own(reads)
    .selectFrom('audit')
    .select([
      'id',
      'action',
      'actor',
      'actor_id',
      'target_type',
      'target_id',
      'detail',
      'ip_address',
      'user_agent',
      'created_at',
      'workspace_id',
    ])
    .where('workspace_id', '=', workspace);
  if (action !== undefined) page = page.where('action', '=', action);
  if (actor !== undefined) page = page.where('actor', '=', actor);
  if (since !== undefined) page = page.where('created_at', '>=', since);
  if (until !== undefined) page = page.where('created_at', '<=', until);
  const entries = page.orderBy('position', 'desc').limit(limit).offset(offset).execute();
  return { entries: await entries, total: await totalOf(reads, workspace, query), limit, offset };
}

async function totalOf(reads: Reads, workspace: number, { action, actor, since, until }: AuditQuery): Promise<number> {
  if (since === undefined && until === undefined) {
    let counts = own(reads)
      .selectFrom('audit_counts')
      .select(({ fn }) => fn.sum<number | null>('count').as('total'))
      .where('workspace_id', '=', workspace);
    if (action !== undefined) counts = counts.where('action', '=', action);
    if (actor !== undefined) counts = counts.where('actor', '=', actor);
    return (await counts.executeTakeFirst())?.total ?? 0;
  }
  let counted = own(reads)
    .selectFrom('audit')
    .select(({ fn }) => fn.countAll<number>().as('total'))
    .where('workspace_id', '=', workspace);
  if (action !== undefined) counted = counted.where('action', '=', action);
  if (actor !== undefined) counted = counted.where('actor', '=', actor);
  if (since !== undefined) counted = counted.where('created_at', '>=', since);
  if (until !== undefined) counted = counted.where('created_at', '<=', until);
  return (await counted.executeTakeFirst())?.total ?? 0;
}
