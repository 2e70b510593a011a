/** Alert rules: the list, one, and those that are to be evaluated. */
import { alertRulesProjection, alertRulesTable } from '../../projections/alerts/rules.ts';
import type { EntityType, Operator } from '../../shared/contract/alerts/conditions.ts';
import type { AlertRuleRecord } from '../../shared/contract/alerts/rules.ts';
import type { AlertReads } from '../../shared/ports/alerts/rules.ts';
import { type Reads, tables } from '../reads.ts';
import { columnsOf, type Executed, type Records, rowAfter } from '../records.ts';
import { conditionMet } from './conditions.ts';

const own = (reads: Reads) => tables(reads, alertRulesProjection);
const ofWorkspace = (reads: Reads, workspace: number) =>
  own(reads).selectFrom('alert_rules').where('workspace_id', '=', workspace);

const COLUMNS = [
  'id',
  'name',
  'description',
  'enabled',
  'entity_type',
  'condition_field',
  'condition_operator',
  'condition_value',
  'action_type',
  'action_config',
  'cooldown_minutes',
  'last_triggered_at',
  'trigger_count',
  'created_by',
  'created_at',
  'updated_at',
  'workspace_id',
] as const;

interface Typed {
  readonly entity_type: EntityType;
  readonly condition_operator: Operator;
}

/** Newest first; there are never many. Each with the position of the event that changed it last. */
export async function listRules(
  reads: Reads,
  workspace: number,
): Promise<{ readonly rule: AlertRuleRecord; readonly position: number }[]> {
  const rows = await ofWorkspace(reads, workspace)
    .select([...COLUMNS, 'position'])
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
  return rows.map(({ position, ...rule }) => ({ rule: rule as AlertRuleRecord, position }));
}

/** Undefined when the workspace has no such rule. */
export async function findRule(reads: Reads, workspace: number, id: number): Promise<AlertRuleRecord | undefined> {
  const row = await ofWorkspace(reads, workspace).select(COLUMNS).where('id', '=', id).executeTakeFirst();
  return row as AlertRuleRecord | undefined;
}

/** A rule as it is after a command. @throws AppError 404 when it was deleted by then */
export async function ruleAfter(
  records: Records,
  workspace: number,
  id: number,
  executed: Executed,
): Promise<AlertRuleRecord> {
  const key = { workspace_id: workspace, id };
  const row = await rowAfter(records, 'Alert rule', [alertRulesProjection, alertRulesTable], key, executed);
  return columnsOf(row, COLUMNS) as AlertRuleRecord;
}

export async function countRules(reads: Reads, workspace: number): Promise<number> {
  const counted = await ofWorkspace(reads, workspace)
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirst();
  return Number(counted?.count ?? 0);
}

export const alertReads = (reads: Reads): AlertReads => ({
  async watched(after, limit, workspace) {
    let matching = own(reads)
      .selectFrom('alert_rules')
      .where('enabled', '=', true)
      .where(({ eb, refTuple, tuple }) => eb(refTuple('workspace_id', 'id'), '>', tuple(after.workspace, after.id)));
    if (workspace !== undefined) matching = matching.where('workspace_id', '=', workspace);
    const rows = await matching
      .select([
        'tenant_id as tenant',
        'workspace_id as workspace',
        'id',
        'name',
        'entity_type',
        'condition_field',
        'condition_operator',
        'condition_value',
        'cooldown_minutes',
        'last_triggered_at',
        'position',
      ])
      .orderBy('workspace_id')
      .orderBy('id')
      .limit(limit)
      .execute();
    return rows as (Omit<(typeof rows)[number], keyof Typed> & Typed)[];
  },
  isMet: (rule, now) => conditionMet(reads, rule.workspace, rule, now, rule.last_triggered_at),
});
