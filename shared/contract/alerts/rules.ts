/** Alert rules: requests and responses. */
import { z } from 'zod';
import { ACTION_TYPES, ruleFields } from '../../events/alerts/rules.ts';
import { isObject } from '../../storable.ts';
import { idText, idValue, jsonObject, unixSeconds } from '../common.ts';
import { derivationsSchema, evidenceParams } from '../evidence.ts';
import { filledText, storable, text } from '../storable.ts';
import { COOLDOWNS, type Condition, type CooldownPer, ENTITY_TYPES, OPERATORS, problemOf } from './conditions.ts';

export const DEFAULT_COOLDOWN = 60;
/** A week, minutes. */
const MAX_COOLDOWN = 10_080;
/** Maximum number of rules per workspace. Every evaluation reads each of them. */
export const MAX_RULES = 500;
/** Characters of `action_config` as JSON: the list has all rules. */
const MAX_CONFIG = 10_000;

export const alertRuleSchema = z
  .object({
    id: z.int(),
    ...ruleFields.shape,
    action_config: ruleFields.shape.action_config.describe(
      'secrets in it, and the path of a URL, are shown as 8 dashes, except to admins',
    ),
    last_triggered_at: unixSeconds.nullable(),
    trigger_count: z.int(),
    created_by: z.string(),
    created_at: unixSeconds,
    updated_at: unixSeconds,
    workspace_id: z.int(),
  })
  .meta({ id: 'AlertRule' });
export type AlertRuleRecord = z.infer<typeof alertRuleSchema>;

const MAX_FIELD = 100;
const MAX_VALUE = 500;

const condition = {
  entity_type: z.enum(ENTITY_TYPES),
  condition_field: filledText(MAX_FIELD).describe('a field of the records; for counts also field=value'),
  condition_operator: z.enum(OPERATORS),
  condition_value: text(MAX_VALUE)
    .min(1, 'must not be empty')
    .describe('a number or whole number as text where the operator compares numbers'),
};
const cooldown = z.int().min(1).max(MAX_COOLDOWN).describe('how long the rule is quiet after it has triggered');
const cooldownPer = z
  .enum(COOLDOWNS)
  .describe(
    'what is quiet: the whole rule, or each record for which it triggered, so that it still triggers for others; always the rule for counts',
  );

/** Accepts 1 or 0, which some clients send, as true or false. */
const flag = z
  .union([z.boolean(), z.literal(0), z.literal(1)])
  .transform((value) => Boolean(value))
  .meta({ override: { type: 'boolean' } });

const fields = {
  name: filledText(200),
  description: text(1_000).nullable(),
  enabled: flag,
  ...condition,
  action_type: z.enum(ACTION_TYPES),
  action_config: jsonObject
    .superRefine(storable({ characters: MAX_CONFIG }))
    .describe('for notification: recipient, default system; for webhook: url, and a secret to sign with'),
  cooldown_minutes: cooldown,
  cooldown_per: cooldownPer,
};

const addProblem = (
  rule: Condition & { readonly cooldown_per: CooldownPer },
  context: z.RefinementCtx,
  ...within: readonly string[]
): void => {
  const problem = problemOf(rule, rule.cooldown_per);
  if (problem) context.addIssue({ code: 'custom', path: [...within, problem.field], message: problem.reason });
};

const newRuleBody = z
  .object({
    action: z.literal('create').optional(),
    ...fields,
    description: fields.description.optional(),
    enabled: fields.enabled.optional().describe('default true'),
    action_type: fields.action_type.default('notification'),
    action_config: fields.action_config.default({}),
    cooldown_minutes: cooldown.default(DEFAULT_COOLDOWN),
    cooldown_per: cooldownPer.default('rule'),
  })
  .superRefine((rule, context) => addProblem(rule, context));
export type NewRuleBody = z.infer<typeof newRuleBody>;

const evaluateBody = z.object({ action: z.literal('evaluate') });

const backtestBody = z
  .object({
    action: z.literal('backtest'),
    id: idValue.optional().describe('of a rule; or send `rule`'),
    rule: z
      .object({
        ...condition,
        cooldown_minutes: cooldown.default(DEFAULT_COOLDOWN),
        cooldown_per: cooldownPer.default('rule'),
      })
      .superRefine((rule, context) => addProblem(rule, context))
      .optional()
      .describe('one that need not exist'),
    hours: z.int().min(1).max(720).default(24).describe('until now'),
  })
  .refine(({ id, rule }) => (id === undefined) !== (rule === undefined), {
    path: ['rule'],
    message: 'send either a rule, or the id of one',
  });
export type BacktestBody = z.infer<typeof backtestBody>;

const ACTIONS: readonly unknown[] = ['evaluate', 'backtest'];
/** With any other `action`, or none, the body is a rule. */
export const alertsBody = z.preprocess(
  (body) => (isObject(body) && !ACTIONS.includes(body.action) ? { ...body, action: undefined } : body),
  z.discriminatedUnion('action', [newRuleBody, evaluateBody, backtestBody]),
);

export const ruleChangesBody = z
  .object({ id: idValue, ...z.object(fields).partial().shape })
  .refine(({ id: _id, ...changes }) => Object.values(changes).some((value) => value !== undefined), {
    path: ['name'],
    message: `nothing to change; send at least one of ${Object.keys(fields).join(', ')}`,
  });
export type RuleChangesBody = z.infer<typeof ruleChangesBody>;

export const deleteRuleBody = z.object({ id: idValue.optional() });
export const deleteRuleQuery = z.object({ id: idText.optional().describe('unless it is in the body') });

const evidence = derivationsSchema.optional();

export const alertsQuery = z.object(evidenceParams);

export const alertRulesResponse = z.object({ rules: z.array(alertRuleSchema).describe('newest first'), evidence });
export const alertRuleResponse = z.object({ rule: alertRuleSchema, evidence });
export const ruleDeletedResponse = z.object({ deleted: z.literal(true) });

export const evaluationResponse = z.object({
  evaluated: z.int().describe('enabled rules'),
  triggered: z.int(),
  results: z.array(
    z.object({
      rule_id: z.int(),
      rule_name: z.string(),
      triggered: z.boolean(),
      reason: z.string().describe('if the rule triggered, with the records for which it did'),
    }),
  ),
  evidence,
});
export type Evaluation = z.infer<typeof evaluationResponse>;

export const backtestResponse = z.object({
  rule_id: z.int().nullable(),
  hours: z.int().describe('as asked for'),
  since: unixSeconds.describe('beginning of the replayed time; later than requested if there was too much to replay'),
  until: unixSeconds,
  complete: z.boolean().describe('whether the whole requested time was replayed'),
  evaluated: z.int().describe('how often the rule would have been evaluated, cooldowns included'),
  triggered: z.int().describe('how often it would have triggered'),
  triggers: z.array(unixSeconds).describe('when, oldest first; at most the first 100'),
  message: z.string(),
  evidence,
});
export type Backtest = z.infer<typeof backtestResponse>;
