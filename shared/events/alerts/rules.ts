/**
 * Alert rules, and when they triggered. Streams: `alert-<workspace>-<id>`.
 *
 * A trigger is not an activity: rules count activities, and a rule that counted its own would trigger for ever.
 */
import { z } from 'zod';
import { COOLDOWNS, ENTITY_TYPES, type EntityType, OPERATORS } from '../../contract/alerts/conditions.ts';
import { frontOf } from '../../storable.ts';
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
  cooldown_per: z.enum(COOLDOWNS),
});
export type RuleFields = Readonly<z.infer<typeof ruleFields>>;
export type ActionConfig = RuleFields['action_config'];

/** Sealed with a key of the rule's own; null once that key has been deleted. */
const sealed = ruleFields.extend({ action_config: ruleFields.shape.action_config.nullable() });

/** With what is not shown: the id of the agent that is the recipient. Null: a user, or a name that no agent had. */
const stored = sealed.extend({ recipient_agent: z.int().positive().nullable() });

/** A rule before its first event. */
export const NO_RULE: RuleFields & Pick<z.infer<typeof stored>, 'recipient_agent'> = {
  recipient_agent: null,
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
  cooldown_per: 'rule',
};

/**
 * A rule after an event that sets some of its fields. The config is null once its key has been deleted: a rule without
 * one notifies `system`, and calls no webhook.
 */
export const ruleAfter = <R extends RuleFields>(
  rule: R,
  { action_config: config, ...set }: Partial<z.infer<typeof stored>>,
): R => ({ ...rule, ...set, action_config: config === undefined ? rule.action_config : (config ?? {}) });

const person = (data: { readonly rule_id: number }): string => `alert_rule:${data.rule_id}`;

export const alertRuleCreated = defineEvent({
  type: 'AlertRuleCreated',
  doc: 'An alert rule was created.',
  schema: stored.extend({ rule_id }),
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
  schema: stored.partial().extend({ rule_id }),
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

/** Named records of a trigger. */
export const MAX_NAMED = 10;
/** Characters of a record's name. */
const MAX_NAME = 80;
/** Records of a rule that may be in a cooldown of their own at the same time. */
export const MAX_COOLING = 1_000;

/** A record for which a rule triggered. */
const alertRecord = z.object({
  id: z.int(),
  /** Name of an agent, title of a task, id of a session, type of an activity. */
  name: z.string(),
  /** Whether the recipient of the notification may read the name. */
  shown: z.boolean(),
});
export type AlertRecord = Readonly<z.infer<typeof alertRecord>>;

/** The records that a condition matched: the first of them, and how many more there are. */
export interface AlertRecords {
  readonly records: readonly AlertRecord[];
  readonly more: number;
}

const triggeredSchema = ruleFields.omit({ enabled: true, action_config: true, cooldown_minutes: true }).extend({
  rule_id,
  records: z.array(alertRecord).max(MAX_NAMED),
  /** Number of matching records that are not named. */
  more: z.int().nonnegative(),
  /** Ids of all records whose cooldown begins; null: the cooldown is the rule's, or there is none. */
  cooling: z.array(z.int()).max(MAX_COOLING).nullable(),
  /** Position of the newest matching activity: only later ones are new. Null: the records are no activities. */
  reported_to: z.int().positive().nullable(),
  /** Recipient of the notification; null: a webhook is called instead. */
  recipient: z.string().nullable(),
  /** How often the rule has triggered, including this time. */
  count: z.int().positive(),
});
type Triggered = z.infer<typeof triggeredSchema>;

const conditionText = (data: Triggered): string =>
  `${data.entity_type} ${data.condition_field} ${data.condition_operator} ${data.condition_value}`;

const PLURALS: Readonly<Record<EntityType, string>> = {
  agent: 'Agents',
  task: 'Tasks',
  session: 'Sessions',
  activity: 'Activities',
};

/** The records as text, such as `Tasks: 12 (Fix the build), 15 and 3 more`; undefined if there are none. */
export function recordsText(type: EntityType, { records, more }: AlertRecords, all = false): string | undefined {
  if (records.length === 0) return undefined;
  const named = records.map(({ id, name, shown }) => {
    if (!all && !shown) return `${id}`;
    const text = name.length > MAX_NAME ? `${frontOf(name, MAX_NAME - 1)}…` : name;
    return type === 'agent' || type === 'session' ? text : `${id} (${text})`;
  });
  return `${PLURALS[type]}: ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** @param at Unix ms */
const triggerOf = (
  { rule_id: id, recipient: _, count: trigger_count, cooling: __, reported_to: ___, records, ...rule }: Triggered,
  at: number,
) => ({
  id,
  ...rule,
  records: records.map(({ id: record, name }) => ({ id: record, name })),
  trigger_count,
  triggered_at: seconds(at),
});

/** Frames go to agents' keys as well, which may not read every task's title. */
function frameOf(data: Triggered, at: number) {
  const trigger = triggerOf(data, at);
  if (data.entity_type !== 'task') return trigger;
  return { ...trigger, records: trigger.records.map(({ id }) => ({ id, name: null })) };
}

const messageOf = (data: Triggered): string =>
  [
    data.description ?? `The condition of the rule "${data.name}" is met: ${conditionText(data)}`,
    recordsText(data.entity_type, data),
  ]
    .filter((line) => line !== undefined)
    .join('\n');

export const alertRuleTriggered = defineEvent({
  type: 'AlertRuleTriggered',
  doc: 'The condition of an alert rule was met. The rule, or each of these records, is then quiet during the cooldown.',
  schema: triggeredSchema,
  notification: ({ data }) =>
    data.recipient === null
      ? undefined
      : {
          recipient: data.recipient,
          type: 'alert',
          title: `Alert: ${data.name}`,
          message: messageOf(data),
          source_type: 'alert_rule',
          source_id: data.rule_id,
        },
  frames: ({ data, meta }) => [{ type: 'alert.triggered', data: frameOf(data, meta.at) }],
  webhooks: ({ data, meta }) => [{ type: 'alert.triggered', data: triggerOf(data, meta.at) }],
});
