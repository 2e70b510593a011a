/** The current alert rules, and when they last triggered. */
import { inCooldown } from '../../shared/contract/alerts/conditions.ts';
import { alertRuleSchema } from '../../shared/contract/alerts/rules.ts';
import {
  alertRuleCreated,
  alertRuleDeleted,
  alertRuleTriggered,
  alertRuleUpdated,
  NO_RULE,
  ruleAfter,
} from '../../shared/events/alerts/rules.ts';
import { seconds } from '../../shared/time.ts';
import { columnsFor } from '../columns.ts';
import { defineProjection, defineTable, insert, on, type RowOf, remove, update } from '../projection.ts';

export const alertRulesTable = defineTable(
  'alert_rules',
  {
    workspace_id: 'int',
    id: 'bigint',
    tenant_id: 'int',
    ...columnsFor(alertRuleSchema.omit({ workspace_id: true, id: true })),
    cooldown_minutes: 'int',
    /** The agent that is the recipient. */
    recipient_agent: 'bigint?',
    /** Records in a cooldown of their own, and when the rule triggered for them, Unix seconds. */
    cooling: 'jsonb?',
    /** Position of the newest activity for which the rule triggered. */
    reported_to: 'bigint?',
  },
  {
    key: ['workspace_id', 'id'],
    indexes: [
      'workspace_id, created_at, id',
      '(workspace_id, id) WHERE enabled',
      '(workspace_id, recipient_agent) WHERE recipient_agent IS NOT NULL',
    ],
  },
);

/** Records in cooldown after a trigger for more of them: those whose cooldown has not ended. */
function coolingAfter(
  { cooling, cooldown_minutes }: Pick<RowOf<(typeof alertRulesTable)['columns']>, 'cooling' | 'cooldown_minutes'>,
  ids: readonly number[],
  now: number,
): Readonly<Record<string, number>> {
  const before = Object.entries((cooling ?? {}) as Readonly<Record<string, number>>);
  const left = before.filter(([, at]) => inCooldown(cooldown_minutes, at, now));
  return Object.fromEntries([...left, ...ids.map((id) => [String(id), now] as const)]);
}

export const alertRulesProjection = defineProjection({
  name: 'alert_rules',
  version: 1,
  tables: [alertRulesTable],
  handlers: [
    on(alertRuleCreated, ({ data: { rule_id: id, ...fields }, meta }) => [
      insert(alertRulesTable, {
        workspace_id: meta.workspace,
        id,
        tenant_id: meta.tenant,
        ...ruleAfter(NO_RULE, fields),
        cooling: null,
        reported_to: null,
        last_triggered_at: null,
        trigger_count: 0,
        created_by: meta.actor.name,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      }),
    ]),
    on(alertRuleUpdated, ({ data: { rule_id: id, ...changes }, meta }) => [
      update(alertRulesTable, { workspace_id: meta.workspace, id }, (row) => ({
        ...ruleAfter(row, changes),
        // Ids of records of another type mean others.
        cooling: changes.entity_type === undefined || changes.entity_type === row.entity_type ? row.cooling : null,
        updated_at: seconds(meta.at),
      })),
    ]),
    on(alertRuleTriggered, ({ data, meta }) => [
      update(alertRulesTable, { workspace_id: meta.workspace, id: data.rule_id }, (row) => ({
        ...row,
        last_triggered_at: seconds(meta.at),
        trigger_count: data.count,
        cooling: data.cooling && coolingAfter(row, data.cooling, seconds(meta.at)),
        reported_to: data.reported_to ?? row.reported_to,
      })),
    ]),
    on(alertRuleDeleted, ({ data, meta }) => [
      remove(alertRulesTable, { workspace_id: meta.workspace, id: data.rule_id }),
    ]),
  ],
});
