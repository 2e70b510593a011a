/** Alert rules, as they are now, and when they triggered last. */
import type { EntityType, Operator } from '../../shared/contract/alerts/conditions.ts';
import type { ActionType } from '../../shared/contract/alerts/rules.ts';
import {
  type ActionConfig,
  alertRuleCreated,
  alertRuleDeleted,
  alertRuleTriggered,
  alertRuleUpdated,
  NO_RULE,
  ruleAfter,
} from '../../shared/events/alerts/rules.ts';
import { seconds } from '../../shared/time.ts';
import { defineProjection, defineTable, insert, on, update } from '../projection.ts';

export const alertRulesTable = defineTable(
  'alert_rules',
  {
    workspace_id: 'int',
    id: 'bigint',
    tenant_id: 'int',
    name: 'text',
    description: 'text?',
    enabled: 'boolean',
    entity_type: 'text',
    condition_field: 'text',
    condition_operator: 'text',
    condition_value: 'text',
    action_type: 'text',
    action_config: 'jsonb',
    cooldown_minutes: 'int',
    last_triggered_at: 'bigint?',
    trigger_count: 'bigint',
    created_by: 'text',
    created_at: 'bigint',
    updated_at: 'bigint',
  },
  {
    key: ['workspace_id', 'id'],
    indexes: ['workspace_id, created_at DESC, id DESC', '(workspace_id, id) WHERE enabled'],
  },
);

export const alertRulesProjection = defineProjection({
  name: 'alert_rules',
  version: 1,
  tables: [alertRulesTable],
  handlers: [
    on(alertRuleCreated, ({ data, meta }) => [
      insert(alertRulesTable, {
        workspace_id: meta.workspace,
        id: data.rule_id,
        tenant_id: meta.tenant,
        ...ruleAfter(NO_RULE, data),
        last_triggered_at: null,
        trigger_count: 0,
        created_by: meta.actor.name,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      }),
    ]),
    on(alertRuleUpdated, ({ data, meta }) => [
      update(alertRulesTable, { workspace_id: meta.workspace, id: data.rule_id }, (row) => ({
        ...row,
        ...ruleAfter(
          {
            ...row,
            entity_type: row.entity_type as EntityType,
            condition_operator: row.condition_operator as Operator,
            action_type: row.action_type as ActionType,
            action_config: row.action_config as ActionConfig,
          },
          data,
        ),
        updated_at: seconds(meta.at),
      })),
    ]),
    on(alertRuleTriggered, ({ data, meta }) => [
      update(alertRulesTable, { workspace_id: meta.workspace, id: data.rule_id }, (row) => ({
        ...row,
        last_triggered_at: seconds(meta.at),
        trigger_count: data.count,
      })),
    ]),
    on(alertRuleDeleted, ({ data, meta }) => [
      update(alertRulesTable, { workspace_id: meta.workspace, id: data.rule_id }, () => undefined),
    ]),
  ],
});
