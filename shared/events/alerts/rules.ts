/**
 * Alert rules, and when they triggered. Streams: `alert-<workspace>-<id>`.
 *
 * That a rule triggered is no activity: rules look at activities, and one that looked at its own would trigger for ever.
 */
import { z } from 'zod';
import { type Condition, ENTITY_TYPES, OPERATORS } from '../../contract/alerts/conditions.ts';
import { ACTION_TYPES, type ActionType } from '../../contract/alerts/rules.ts';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';

export const ruleStream = (workspace: number, id: number): string => `alert-${workspace}-${id}`;

const ruleId = z.int().positive();

/** What is done when a rule triggers. */
const actionType = z.enum(ACTION_TYPES);

/** Sealed with a key of the rule's own; null once that key is gone. */
const actionConfig = z.record(z.string(), z.unknown()).nullable();

const fields = {
  name: z.string(),
  description: z.string().nullable(),
  enabled: z.boolean(),
  entityType: z.enum(ENTITY_TYPES),
  conditionField: z.string(),
  conditionOperator: z.enum(OPERATORS),
  conditionValue: z.string(),
  actionType,
  actionConfig,
  cooldownMinutes: z.int().positive(),
};

/** What a rule says, as events have it. */
export type RuleData = z.infer<z.ZodObject<typeof fields>>;

export type ActionConfig = Readonly<Record<string, unknown>>;

/** What a rule says, by the names of its record. */
export interface RuleFields extends Condition {
  readonly name: string;
  readonly description: string | null;
  readonly enabled: boolean;
  readonly action_type: ActionType;
  readonly action_config: ActionConfig;
  readonly cooldown_minutes: number;
}

export const toRuleData = (rule: RuleFields): RuleData => ({
  name: rule.name,
  description: rule.description,
  enabled: rule.enabled,
  entityType: rule.entity_type,
  conditionField: rule.condition_field,
  conditionOperator: rule.condition_operator,
  conditionValue: rule.condition_value,
  actionType: rule.action_type,
  actionConfig: { ...rule.action_config },
  cooldownMinutes: rule.cooldown_minutes,
});

/** The fields of a rule after an event that sets some of them. */
export const ruleAfter = (
  rule: RuleFields,
  set: { readonly [K in keyof RuleData]?: RuleData[K] | undefined },
): RuleFields => ({
  name: set.name ?? rule.name,
  description: set.description === undefined ? rule.description : set.description,
  enabled: set.enabled ?? rule.enabled,
  entity_type: set.entityType ?? rule.entity_type,
  condition_field: set.conditionField ?? rule.condition_field,
  condition_operator: set.conditionOperator ?? rule.condition_operator,
  condition_value: set.conditionValue ?? rule.condition_value,
  action_type: set.actionType ?? rule.action_type,
  // Null once the key is gone: a rule without a config notifies `system`, and calls no webhook.
  action_config: set.actionConfig === undefined ? rule.action_config : (set.actionConfig ?? {}),
  cooldown_minutes: set.cooldownMinutes ?? rule.cooldown_minutes,
});

/** A rule before its first event. */
export const NO_RULE: RuleFields = {
  name: '',
  description: null,
  enabled: false,
  entity_type: 'agent',
  condition_field: '',
  condition_operator: 'equals',
  condition_value: '',
  action_type: 'notification',
  action_config: {},
  cooldown_minutes: 1,
};

const person = (data: { readonly ruleId: number }): string => `alert_rule:${data.ruleId}`;
const aboutRule = (id: number) => ({ target_type: 'alert_rule', target_id: id });

export const alertRuleCreated = defineEvent({
  type: 'AlertRuleCreated',
  version: 1,
  doc: 'A rule exists from now on.',
  schema: z.object({ ruleId, ...fields }),
  personal: { fields: ['actionConfig'], person },
  audit: ({ data: { ruleId: id, name } }) => ({ action: 'alert_rule_created', ...aboutRule(id), detail: { name } }),
});

export const alertRuleUpdated = defineEvent({
  type: 'AlertRuleUpdated',
  version: 1,
  doc: 'Fields of a rule were set. Those that are missing stayed as they were.',
  schema: z.object({ ruleId, ...z.object(fields).partial().shape }),
  personal: { fields: ['actionConfig'], person },
});

export const alertRuleDeleted = defineEvent({
  type: 'AlertRuleDeleted',
  version: 1,
  doc: 'A rule is gone. That it triggered stays in the log.',
  schema: z.object({ ruleId, name: z.string() }),
  audit: ({ data: { ruleId: id, name } }) => ({ action: 'alert_rule_deleted', ...aboutRule(id), detail: { name } }),
});

const triggeredSchema = z.object({
  ruleId,
  name: z.string(),
  description: z.string().nullable(),
  entityType: z.enum(ENTITY_TYPES),
  conditionField: z.string(),
  conditionOperator: z.enum(OPERATORS),
  conditionValue: z.string(),
  actionType,
  /** Who is notified; null: nobody, a webhook is called. */
  recipient: z.string().nullable(),
  /** How often the rule has triggered, this time included. */
  count: z.int().positive(),
});
type Triggered = z.infer<typeof triggeredSchema>;

const conditionText = (data: Triggered): string =>
  `${data.entityType} ${data.conditionField} ${data.conditionOperator} ${data.conditionValue}`;

/** @param at Unix ms */
const triggerOf = (data: Triggered, at: number) => ({
  id: data.ruleId,
  name: data.name,
  description: data.description,
  entity_type: data.entityType,
  condition_field: data.conditionField,
  condition_operator: data.conditionOperator,
  condition_value: data.conditionValue,
  action_type: data.actionType,
  trigger_count: data.count,
  triggered_at: seconds(at),
});

export const alertRuleTriggered = defineEvent({
  type: 'AlertRuleTriggered',
  version: 1,
  doc: 'The condition of a rule was met. Whoever appends this event makes the rule quiet for its cooldown; nobody else triggers it meanwhile.',
  schema: triggeredSchema,
  notification: ({ data }) =>
    data.recipient === null
      ? undefined
      : {
          recipient: data.recipient,
          type: 'alert',
          title: `Alert: ${data.name}`,
          message: data.description ?? `The condition of the rule "${data.name}" is met: ${conditionText(data)}`,
          source_type: 'alert_rule',
          source_id: data.ruleId,
        },
  frames: ({ data, meta }) => [{ type: 'alert.triggered', data: triggerOf(data, meta.at) }],
  webhooks: ({ data, meta }) => [{ type: 'alert.triggered', data: triggerOf(data, meta.at) }],
});

export const alertRuleEvents = [alertRuleCreated, alertRuleUpdated, alertRuleDeleted, alertRuleTriggered];
