/** Retention: how long rows are kept, and the removal of older ones. */
import { type Cleaned, cleanUp, previewCleanup } from '../../../commands/admin/cleanup.ts';
import { settingValues } from '../../../queries/admin/settings.ts';
import { cleanupBody, cleanupResponse, retentionResponse } from '../../../shared/contract/admin/cleanup.ts';
import { RETAINED, type Retained } from '../../../shared/events/admin/cleanup.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

const dateOf = (cutoff: number): string => new Date(cutoff * 1_000).toISOString().slice(0, 10);

const partsOf = ({ commands, reads, now }: Services) => ({ commands, reads, now });

const read = defineRoute({
  method: 'get',
  path: '/api/cleanup',
  summary: 'Get retention times and numbers of older rows',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'all', prompts: 'none' },
  shared: 'cleanup',
  responses: { 200: { description: 'Days by kind of record, and a preview', schema: retentionResponse } },
  async respond({ identity, services }) {
    const kinds = [...RETAINED, 'logs', 'gateway_sessions'] as const;
    const names = kinds.map((kind) => `retention.${kind}_days` as const);
    const set = await settingValues(services.reads, services.settings, names);
    const daysOf = (kind: (typeof kinds)[number]) => Number(set[`retention.${kind}_days`]);
    const days = Object.fromEntries(RETAINED.map((table) => [table, daysOf(table)]));
    const found = await previewCleanup(partsOf(services), identity.workspace, days);
    return {
      retention: {
        activities: daysOf('activities'),
        auditLog: daysOf('audit_log'),
        logs: daysOf('logs'),
        notifications: daysOf('notifications'),
        pipelineRuns: daysOf('pipeline_runs'),
        tokenUsage: daysOf('token_usage'),
        // Gateways keep their own sessions, so there is nothing to remove here; older ones are not listed.
        gatewaySessions: daysOf('gateway_sessions'),
      },
      preview: RETAINED.map((table) => {
        const one = found.find((target) => target.table === table);
        if (!one) return { table, retention_days: 0, stale_count: 0, note: 'kept forever' };
        const { retention_days, cutoff, deleted } = one;
        return { table, retention_days, cutoff_date: dateOf(cutoff), stale_count: deleted };
      }),
    };
  },
});

const run = defineRoute({
  method: 'post',
  path: '/api/cleanup',
  summary: 'Remove old activities, notifications, pipeline runs, token reports and audit entries from the lists',
  description:
    'Rows are removed from the lists of the caller’s workspace only. Events stay in the log. Runs that have not ended stay, and so do audit entries that are younger than the setting retention.audit_log_days. Sums of tokens no longer include the removed reports.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  shared: 'cleanup',
  limit: 'heavy',
  body: cleanupBody,
  bodyOptional: true,
  responses: { 200: { description: 'What was removed', schema: cleanupResponse } },
  async respond({ body, identity, services, command }) {
    const days = body.older_than_days;
    const set = await settingValues(services.reads, services.settings, ['retention.audit_log_days']);
    const auditDays = Number(set['retention.audit_log_days']);
    const retention = {
      ...Object.fromEntries(RETAINED.map((table) => [table, days])),
      // The operator sets how long the audit trail is kept, not the people whose actions it records.
      audit_log: auditDays === 0 ? 0 : Math.max(days, auditDays),
    };
    const { results, complete } = body.dry_run
      ? { results: await previewCleanup(partsOf(services), identity.workspace, retention), complete: true }
      : await cleanUp(partsOf(services), command, retention, 'request');
    return { success: true, dry_run: body.dry_run, complete, ...sumOf(results) };
  },
});

function sumOf(results: readonly Cleaned[]) {
  const deletedOf = (table: Retained) => results.find((one) => one.table === table)?.deleted ?? 0;
  return {
    deleted: Object.fromEntries(RETAINED.map((table) => [table, deletedOf(table)])) as Record<Retained, number>,
    total_deleted: results.reduce((sum, { deleted }) => sum + deleted, 0),
    results: results.map(({ table, deleted, cutoff, retention_days }) => ({
      table,
      deleted,
      cutoff_date: dateOf(cutoff),
      retention_days,
    })),
  };
}

export const cleanupRoutes: readonly Route[] = [read, run];
