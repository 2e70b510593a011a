/**
 * Alert rules, and when they triggered. Streams: `alert-<workspace>-<id>`.
 *
 * A trigger is not an activity: rules count activities, and a rule that counted its own would trigger for ever.
 */
import { z } from 'zod';
import { ENTITY_TYPES, OPERATORS } from '../../contract/alerts/conditions.ts';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';

export const ruleStream = (workspace: number, id: number): string => `alert-${workspace}-${id}`;

const rule_id = z.int().positive();

/** Actions of a rule when it triggers. */
export const ACTION_TYPES = ['notification', 'webhook'] as const;

/** What a rule says. */
export const ruleFields = z.object({
  name: z.string(),
  description: z.string().nullable(),
  enabled: z.boolean(),
  entity_type: z.enum(ENTITY_TYPES),
  condition_field: z.string(),
  condition_operator: z.enum(OPERATORS),
  condition_value: z.string(),
  action_type: z.enum(ACTION_TYPES),
  action_config: z.record(z.string(), z.unknown()),
  cooldown_minutes: z.int().positive(),
});
export type RuleFields = Readonly<z.infer<typeof ruleFields>>;
export type ActionConfig = RuleFields['action_config'];

/** Sealed with a key of the rule's own; null once that key has been deleted. */
const sealed = ruleFields.extend({ action_config: ruleFields.shape.action_config.nullable() });

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

/**
 * A rule after an event that sets some of its fields. The config is null once its key has been deleted: a rule without
 * one notifies `system`, and calls no webhook.
 */
export const ruleAfter = <R extends RuleFields>(
  rule: R,
  { action_config: config, ...set }: Partial<z.infer<typeof sealed>>,
): R => ({ ...rule, ...set, action_config: config === undefined ? rule.action_config : (config ?? {}) });

const person = (data: { readonly rule_id: number }): string => `alert_rule:${data.rule_id}`;

export const alertRuleCreated = defineEvent({
  type: 'AlertRuleCreated',
  doc: 'An alert rule was created.',
  schema: sealed.extend({ rule_id }),
  personal: { fields: ['action_config'], person },
  audit: ({ data: { rule_id: id, name } }) => ({
    action: 'alert_rule_created',
    target: ['alert_rule', id],
    detail: { name },
  }),
});

export const alertRuleUpdated = defineEvent({
  type: 'AlertRuleUpdated',
  doc: 'Fields of an alert rule were set. Absent fields are unchanged.',
  schema: sealed.partial().extend({ rule_id }),
  personal: { fields: ['action_config'], person },
});

export const alertRuleDeleted = defineEvent({
  type: 'AlertRuleDeleted',
  doc: 'An alert rule was deleted. Its triggers remain in the log.',
  schema: z.object({ rule_id, name: z.string() }),
  audit: ({ data: { rule_id: id, name } }) => ({
    action: 'alert_rule_deleted',
    target: ['alert_rule', id],
    detail: { name },
  }),
});

const triggeredSchema = ruleFields.omit({ enabled: true, action_config: true, cooldown_minutes: true }).extend({
  rule_id,
  /** Recipient of the notification; null: a webhook is called instead. */
  recipient: z.string().nullable(),
  /** How often the rule has triggered, including this time. */
  count: z.int().positive(),
});
type Triggered = z.infer<typeof triggeredSchema>;

const conditionText = (data: Triggered): string =>
  `${data.entity_type} ${data.condition_field} ${data.condition_operator} ${data.condition_value}`;

/** @param at Unix ms */
const triggerOf = ({ rule_id: id, recipient: _, count: trigger_count, ...rule }: Triggered, at: number) => ({
  id,
  ...rule,
  trigger_count,
  triggered_at: seconds(at),
});

export const alertRuleTriggered = defineEvent({
  type: 'AlertRuleTriggered',
  doc: 'The condition of an alert rule was met. The rule does not trigger again during its cooldown.',
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
          source_id: data.rule_id,
        },
  frames: ({ data, meta }) => [{ type: 'alert.triggered', data: triggerOf(data, meta.at) }],
  webhooks: ({ data, meta }) => [{ type: 'alert.triggered', data: triggerOf(data, meta.at) }],
});
